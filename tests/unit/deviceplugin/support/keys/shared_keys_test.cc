// Keys that nodes share: their file, and what they sign.
#include "deviceplugin/support/keys/shared_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/rapidcheck.h"

namespace railhead::testing {
namespace {

std::string KeyLine(int number) {
  return std::string(62, 'a') + std::to_string(10 + number) + "\n";
}

SharedKeys KeysOf(const std::string& text) {
  auto keys = SharedKeys::Parse(text, "keys");
  EXPECT_TRUE(keys) << Describe(keys.error());
  return *std::move(keys);
}

std::string Hex(const SharedKeys::Signature& signature) {
  std::string text;
  constexpr const char* kDigits = "0123456789abcdef";
  for (const std::uint8_t byte : signature) text.append({kDigits[byte >> 4U], kDigits[byte & 15U]});
  return text;
}

// RFC 4231, test cases 1 and 6.
TEST(SharedKeysTest, SignsAsTheStandardSays) {
  EXPECT_EQ(Hex(KeysOf("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b").Sign("Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  std::string long_key;
  for (int i = 0; i < 131; ++i) long_key += "aa";
  EXPECT_EQ(Hex(KeysOf(long_key).Sign("Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// Every step of a change of keys: what any node signs, any other verifies, whichever step either is at.
TEST(SharedKeysTest, KeysChangeWithoutAGap) {
  const std::vector<std::string> steps = {KeyLine(0), KeyLine(0) + KeyLine(1), KeyLine(1) + KeyLine(0),
                                          KeyLine(1)};
  for (std::size_t step = 0; step + 1 < steps.size(); ++step) {
    const SharedKeys one = KeysOf(steps[step]);
    const SharedKeys other = KeysOf(steps[step + 1]);
    EXPECT_TRUE(one.Verify("message", other.Sign("message"))) << step;
    EXPECT_TRUE(other.Verify("message", one.Sign("message"))) << step;
  }
  EXPECT_FALSE(KeysOf(steps[0]).Verify("message", KeysOf(steps[3]).Sign("message"))) << "a key that is gone";
}

RC_GTEST_PROP(SharedKeysProperty, NothingElseVerifies, (const std::string& message)) {
  const SharedKeys keys = KeysOf(KeyLine(0) + KeyLine(1));
  auto signature = keys.Sign(message);
  RC_ASSERT(keys.Verify(message, signature));
  RC_ASSERT(!keys.Verify(message + "x", signature));
  RC_ASSERT(!keys.Verify(message, std::span(signature).first(SharedKeys::kSignature - 1)));
  const auto at = *rc::gen::inRange<std::size_t>(0, SharedKeys::kSignature);
  signature[at] ^= static_cast<std::uint8_t>(1U << *rc::gen::inRange(0U, 8U));
  RC_ASSERT(!keys.Verify(message, signature));
}

TEST(SharedKeysTest, TheFileIsReadStrictly) {
  const SharedKeys keys = KeysOf("# of 2026\n\n  " + KeyLine(0) + "unsigned # until all have it\n");
  EXPECT_TRUE(keys.takes_unsigned());
  EXPECT_EQ(keys.Sign("m"), KeysOf(KeyLine(0)).Sign("m"));
  EXPECT_FALSE(KeysOf(KeyLine(0)).takes_unsigned());
  for (const std::string text : {"", "unsigned\n", "abcd\n", "0123456789abcdef0123456789abcdeg\n",
                                 "0123456789abcdef0123456789abcdef0\n", "UNSIGNED\n"}) {
    const auto refused = SharedKeys::Parse(text, "file");
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(refused.error().message.find("0123456789"), std::string::npos) << "keys are secret";
  }
  std::string many;
  for (int i = 0; i < 9; ++i) many += KeyLine(i);
  EXPECT_FALSE(SharedKeys::Parse(many, "file"));
}

}  // namespace
}  // namespace railhead::testing
