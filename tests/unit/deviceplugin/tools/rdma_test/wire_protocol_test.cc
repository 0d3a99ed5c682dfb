// Messages between the ends of a test, as bytes. And bytes that are not a message.
#include "deviceplugin/tools/rdma_test/wire_protocol.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/frame_seal.h"
#include "deviceplugin/tools/rdma_test/outcome.h"
#include "tests/unit/deviceplugin/tools/rdma_test/support.h"

namespace railhead::rdma_test {
namespace {

using Keys = std::shared_ptr<const SharedKeys>;

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    char pair[3];
    (void)std::snprintf(pair, sizeof(pair), "%02x", static_cast<unsigned char>(byte));
    text += pair;
  }
  return text;
}

Result<Message> Decode(const std::string& bytes) {
  const FrameHeader header = RH_TRY(DecodeHeader(bytes.substr(0, kFrameHeader)));
  return DecodePayload(header, bytes.substr(kFrameHeader));
}

const std::vector<Message>& AllMessages() {
  static const std::vector<Message> messages = {
      SomeHello(),
      SomeEndpoint(),
      Run{RunKind::kSendLatency},
      Ready{},
      Done{},
      End{},
      Failure{static_cast<std::uint8_t>(ErrorCode::kTimeout), "connecting", "look at the route"}};
  return messages;
}

TEST(ExchangeTest, BytesOfAHello) {
  EXPECT_EQ(Hex(EncodeMessage(SomeHello())),
            "52485254"
            "0001"
            "0001"
            "00000022"
            "0005"
            "7261696c30"
            "00000000000000000000ffff0a000001"
            "00010000"
            "0040"
            "0002"
            "12"
            "68"
            "03");
}

TEST(ExchangeTest, BytesOfAnEndpoint) {
  EXPECT_EQ(Hex(EncodeMessage(SomeEndpoint())),
            "52485254"
            "0001"
            "0002"
            "00000037"
            "00000011"
            "00123456"
            "00000000000000000000ffff0a000002"
            "01020304"
            "1122334455667788"
            "0000000000012000"
            "0400"
            "0006"
            "6d6c78355f34"
            "03");
}

TEST(ExchangeTest, EveryMessageComesBack) {
  for (const Message& message : AllMessages()) {
    const auto decoded = Decode(EncodeMessage(message));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, message);
  }
}

// The header states the length. A message that is cut off or too long must not pass.
TEST(ExchangeTest, NoMessageIsShorterOrLonger) {
  for (const Message& message : AllMessages()) {
    const std::string whole = EncodeMessage(message).substr(kFrameHeader);
    const auto kind = static_cast<std::uint16_t>(message.index() + 1);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const FrameHeader header{kind, static_cast<std::uint32_t>(size)};
      EXPECT_FALSE(DecodePayload(header, whole.substr(0, size)))
          << "kind " << kind << " of " << size << " bytes";
    }
    const FrameHeader longer{kind, static_cast<std::uint32_t>(whole.size() + 1)};
    EXPECT_FALSE(DecodePayload(longer, whole + 'x')) << "kind " << kind;
    EXPECT_FALSE(DecodePayload(longer, whole)) << "kind " << kind;
  }
}

TEST(ExchangeTest, WhateverDecodesEncodesToTheSameBytes) {
  std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same bytes each time
  int decoded_some = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = EncodeMessage(AllMessages()[random() % AllMessages().size()]);
    bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto decoded = Decode(bytes);
    if (!decoded) continue;
    ++decoded_some;
    EXPECT_EQ(Hex(EncodeMessage(*decoded)), Hex(bytes));
  }
  EXPECT_GT(decoded_some, 100);
}

TEST(ExchangeTest, BadHeaders) {
  const std::string good = EncodeMessage(Ready{});
  EXPECT_TRUE(DecodeHeader(good));
  EXPECT_EQ(DecodeHeader("GET / HTTP/1").error().code, ErrorCode::kMalformed);
  EXPECT_EQ(DecodeHeader(good.substr(1)).error().code, ErrorCode::kMalformed);
  std::string other_version = good;
  other_version[5] = 3;
  const auto refused = DecodeHeader(other_version);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("version 3"), std::string::npos);
  std::string huge = good;
  huge[8] = 1;
  EXPECT_EQ(DecodeHeader(huge).error().code, ErrorCode::kMalformed);
  EXPECT_FALSE(DecodePayload({99, 0}, ""));
  EXPECT_FALSE(DecodePayload({3, 1}, std::string(1, '\0'))) << "run 0";
  EXPECT_FALSE(DecodePayload({3, 1}, "\x04")) << "run 4";
}

TEST(ExchangeTest, HelloOutOfRange) {
  EXPECT_TRUE(CheckHello(SomeHello()));
  const auto refused = [](const auto& change) {
    Hello hello = SomeHello();
    change(hello);
    return !CheckHello(hello);
  };
  EXPECT_TRUE(refused([](Hello& hello) { hello.gid = *IpAddress::Parse("::"); }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.gid = *IpAddress::Parse("ff02::1"); }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.size = kMinSize - 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.size = kMaxSize + 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.depth = 0; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.depth = kMaxDepth + 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.seconds = 0; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.seconds = kMaxSeconds + 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.timeout = 0; })) << "0 is without end";
  EXPECT_TRUE(refused([](Hello& hello) { hello.timeout = kMaxTimeout + 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.service_level = kMaxServiceLevel + 1; }));
}

TEST(ExchangeTest, EndpointThatCannotBe) {
  const std::uint64_t needed = SomeEndpoint().queue_pair.bytes;
  EXPECT_TRUE(CheckEndpoint(SomeEndpoint(), Gid("10.0.0.1"), needed));
  const auto refused = [&](const auto& change) {
    Endpoint endpoint = SomeEndpoint();
    change(endpoint.queue_pair);
    return !CheckEndpoint(endpoint, Gid("10.0.0.1"), needed);
  };
  EXPECT_TRUE(refused([](QueuePairAddress& pair) { pair.number = 0; }));
  EXPECT_TRUE(refused([](QueuePairAddress& pair) { pair.number = 1U << 24U; }));
  EXPECT_TRUE(refused([](QueuePairAddress& pair) { pair.psn = 1U << 24U; }));
  EXPECT_TRUE(refused([](QueuePairAddress& pair) { pair.gid = *IpAddress::Parse("::"); }));
  EXPECT_TRUE(refused([](QueuePairAddress& pair) { pair.mtu = 128; }));
  EXPECT_TRUE(refused([](QueuePairAddress& pair) { pair.mtu = 8192; }));
  EXPECT_TRUE(refused([](QueuePairAddress& pair) { --pair.bytes; })) << "smaller than what is written";
  EXPECT_TRUE(refused([](QueuePairAddress& pair) { pair.address = ~std::uint64_t{0} - 5; }))
      << "wraps around";
  const auto mixed = CheckEndpoint(SomeEndpoint(), Gid("fd00::1"), needed);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::kConflict);
}

TEST(ExchangeTest, FailureKeepsItsContent) {
  const Error error{ErrorCode::kUnavailable, "port 1 of mlx5_4 is in state down", "ip link", 0};
  EXPECT_FALSE(IsFromPeer(error));
  const Error heard = ErrorOf(FailureOf(error));
  EXPECT_TRUE(IsFromPeer(heard));
  EXPECT_EQ(heard.code, error.code);
  EXPECT_EQ(heard.message, "the other end: " + error.message);
  EXPECT_EQ(heard.hint, error.hint);
  EXPECT_EQ(ErrorOf({200, "of a newer version", ""}).code, ErrorCode::kInternal);
}

TEST(ExchangeTest, OutcomeComesBack) {
  const auto back = DecodeOutcome(EncodeOutcome(SomeOutcome()));
  ASSERT_TRUE(back);
  EXPECT_EQ(EncodeOutcome(*back), EncodeOutcome(SomeOutcome()));
  EXPECT_EQ(back->to.device, "mlx5_9");
  EXPECT_EQ(back->to.gid_index, 5);
  EXPECT_EQ(back->write.GigabitsPerSecond(), 1.0);
  EXPECT_EQ(back->send_latency.p99_us, 3);
  const std::string whole = EncodeOutcome(SomeOutcome());
  EXPECT_FALSE(DecodeOutcome(whole.substr(1)));
  EXPECT_FALSE(DecodeOutcome(whole + 'x'));
}

// Seals of frames: which two ends accept each other's frames, and which frames both reject.

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

// An end that fails before it has heard of the other still reports its failure.
TEST(FrameSealTest, FailureIsReceivedAtAnyTime) {
  const Keys keys = KeysOf(kOne);
  FrameSeal start(keys, EndRole::kStarting);
  FrameSeal answer(keys, EndRole::kAnswering);
  const std::string failure = EncodeMessage(Failure{1, "no device", ""});
  EXPECT_FALSE(Refusal(start, answer.Seal(failure)));
  FrameSeal next(keys, EndRole::kStarting);
  FrameSeal listener(keys, EndRole::kAnswering);
  ASSERT_FALSE(Refusal(listener, next.Seal(EncodeMessage(SomeHello()))));
  EXPECT_FALSE(Refusal(listener, next.Seal(failure)));
}

}  // namespace
}  // namespace railhead::rdma_test
