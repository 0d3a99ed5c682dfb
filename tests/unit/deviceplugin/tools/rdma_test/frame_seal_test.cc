// Seals of frames: which two ends understand each other, and what nobody gets through.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "tests/unit/deviceplugin/tools/rdma_test/support.h"

namespace railhead::rdma_test {
namespace {

using Keys = std::shared_ptr<const SharedKeys>;
Keys KeysOf(const std::string& text) {
  auto keys = SharedKeys::Parse(text, "keys");
  EXPECT_TRUE(keys);
  return std::make_shared<const SharedKeys>(*std::move(keys));
}
const std::string kOne = "00112233445566778899aabbccddeeff\n";
const std::string kTwo = "ffeeddccbbaa99887766554433221100\n";

// nullopt: it was taken.
std::optional<ErrorCode> Refusal(FrameSeal& seal, const std::string& frame) {
  const auto opened = seal.Open(frame.substr(0, kFrameHeader), frame.substr(kFrameHeader));
  return opened ? std::nullopt : std::optional(opened.error().code);
}

// A whole conversation, and what is refused first.
std::optional<ErrorCode> Converse(const Keys& starts, const Keys& answers) {
  FrameSeal start(starts, EndRole::kStarting);
  FrameSeal answer(answers, EndRole::kAnswering);
  for (int turn = 0; turn < 4; ++turn) {
    if (auto refused = Refusal(answer, start.Seal(EncodeMessage(SomeHello())))) return refused;
    if (auto refused = Refusal(start, answer.Seal(EncodeMessage(Ready{})))) return refused;
  }
  return std::nullopt;
}

TEST(FrameSealTest, EndsUnderstandEachOtherByACommonKey) {
  const std::vector<Keys> all = {nullptr, KeysOf(kOne), KeysOf(kOne + kTwo), KeysOf(kTwo + kOne),
                                 KeysOf(kTwo)};
  // By what each signs with and takes.
  const std::vector<std::vector<bool>> well = {{true, false, false, false, false},
                                               {false, true, true, true, false},
                                               {false, true, true, true, false},
                                               {false, false, true, true, true},
                                               {false, false, true, true, true}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      const auto refused = Converse(all[i], all[j]);
      const bool expected = well[i][j] && well[j][i];
      EXPECT_EQ(!refused.has_value(), expected) << i << " with " << j;
      if (refused) {
        EXPECT_EQ(*refused, ErrorCode::kPermission) << i << " with " << j;
      }
    }
  }
}

TEST(FrameSealTest, NoBitMayBeAnother) {
  const Keys keys = KeysOf(kOne);
  FrameSeal start(keys, EndRole::kStarting);
  const std::string frame = start.Seal(EncodeMessage(SomeHello()));
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    std::string other = frame;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    FrameSeal answer(keys, EndRole::kAnswering);
    EXPECT_TRUE(Refusal(answer, other)) << bit;
  }
  FrameSeal answer(keys, EndRole::kAnswering);
  EXPECT_FALSE(Refusal(answer, frame));
}

TEST(FrameSealTest, RecordedFramesFitNowhereElse) {
  const Keys keys = KeysOf(kOne);
  FrameSeal start(keys, EndRole::kStarting);
  FrameSeal answer(keys, EndRole::kAnswering);
  const std::string hello = start.Seal(EncodeMessage(SomeHello()));
  ASSERT_FALSE(Refusal(answer, hello));
  const std::string ready = answer.Seal(EncodeMessage(Ready{}));
  ASSERT_FALSE(Refusal(start, ready));
  const std::string run = start.Seal(EncodeMessage(rdma_test::Run{}));
  EXPECT_TRUE(Refusal(answer, hello)) << "again";
  EXPECT_TRUE(Refusal(start, ready)) << "again";
  EXPECT_TRUE(Refusal(start, run)) << "to who sent it";
  // In another connection only the hello is taken, and nothing behind it.
  FrameSeal another(keys, EndRole::kAnswering);
  EXPECT_FALSE(Refusal(another, hello));
  (void)another.Seal(EncodeMessage(Ready{}));
  EXPECT_TRUE(Refusal(another, run));
  EXPECT_FALSE(Refusal(answer, run));
}

// Who fails before it has heard of the other end says so all the same.
TEST(FrameSealTest, TroubleIsHeardAtAnyTime) {
  const Keys keys = KeysOf(kOne);
  FrameSeal start(keys, EndRole::kStarting);
  FrameSeal answer(keys, EndRole::kAnswering);
  const std::string trouble = EncodeMessage(Trouble{1, "no device", ""});
  EXPECT_FALSE(Refusal(start, answer.Seal(trouble)));
  FrameSeal next(keys, EndRole::kStarting);
  FrameSeal listener(keys, EndRole::kAnswering);
  ASSERT_FALSE(Refusal(listener, next.Seal(EncodeMessage(SomeHello()))));
  EXPECT_FALSE(Refusal(listener, next.Seal(trouble)));
}

}  // namespace
}  // namespace railhead::rdma_test
