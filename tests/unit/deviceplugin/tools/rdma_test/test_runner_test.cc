// Messages over real sockets, and the processes of ends, with others than we expect at the far end.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "deviceplugin/tools/rdma_test/end_process.h"
#include "deviceplugin/tools/rdma_test/interrupts.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "tests/unit/deviceplugin/tools/rdma_test/support.h"

namespace railhead::rdma_test {
namespace {

TimePoint Soon() {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
}
TimePoint Late() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(1);
}

class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    channel_.emplace(UniqueFd(ends[0]));
    far_.Reset(ends[1]);
  }
  void FarSays(const std::string& bytes) {
    ASSERT_EQ(write(far_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  std::optional<Channel> channel_;
  UniqueFd far_;
};

TEST_F(ChannelTest, MessagesFollowOneAnother) {
  FarSays(EncodeMessage(SomeHello()) + EncodeMessage(Ready{}));
  const auto hello = channel_->Expect<Hello>(Late());
  ASSERT_TRUE(hello) << hello.error().message;
  EXPECT_EQ(*hello, SomeHello());
  EXPECT_TRUE(channel_->Expect<Ready>(Late()));
}

TEST_F(ChannelTest, AMessageByteByByte) {
  std::thread far([&] {
    for (const char byte : EncodeMessage(SomeEndpoint())) (void)!write(far_.get(), &byte, 1);
  });
  const auto endpoint = channel_->Expect<Endpoint>(Late());
  far.join();
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ(*endpoint, SomeEndpoint());
}

TEST_F(ChannelTest, SilenceEndsAtTheDeadline) {
  EXPECT_EQ(channel_->Receive(Soon()).error().code, ErrorCode::kTimeout);
  FarSays(EncodeMessage(SomeHello()).substr(0, kFrameHeader + 3));
  EXPECT_EQ(channel_->Receive(Soon()).error().code, ErrorCode::kTimeout) << "half a message";
}

TEST_F(ChannelTest, WhoDoesNotReadEndsAtTheDeadline) {
  Result<void> sent;
  for (int i = 0; sent && i < 1'000'000; ++i) sent = channel_->Send(SomeHello(), Soon());
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kTimeout);
}

TEST_F(ChannelTest, WhoGoesIsNoticed) {
  FarSays(EncodeMessage(SomeHello()).substr(0, 5));
  far_.Reset();
  const auto received = channel_->Receive(Late());
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kIo);
  EXPECT_TRUE(IsFromPeer(received.error()));
  const auto sent = channel_->Send(Ready{}, Late());
  ASSERT_FALSE(sent) << "and no SIGPIPE";
  EXPECT_TRUE(IsFromPeer(sent.error()));
}

TEST_F(ChannelTest, FailureIsAnError) {
  FarSays(EncodeMessage(Failure{static_cast<std::uint8_t>(ErrorCode::kUnavailable), "port down", "cable"}));
  const auto received = channel_->Expect<Ready>(Late());
  ASSERT_FALSE(received);
  EXPECT_EQ(Describe(received.error()), "the other end: port down; cable");
}

TEST_F(ChannelTest, SilentPeerPassesTheCheck) {
  EXPECT_TRUE(channel_->CheckPeer());
  FarSays(EncodeMessage(End{}));
  far_.Reset();
  EXPECT_TRUE(channel_->CheckPeer()) << "its last word is to be heard first";
  EXPECT_TRUE(channel_->Expect<End>(Late())) << "and is still there to be heard";
  const auto gone = channel_->CheckPeer();
  ASSERT_FALSE(gone);
  EXPECT_TRUE(IsFromPeer(gone.error()));
}

TEST_F(ChannelTest, FailureIsReceivedWithoutWaiting) {
  const std::string said =
      EncodeMessage(Failure{static_cast<std::uint8_t>(ErrorCode::kUnavailable), "port down", "cable"});
  FarSays(said.substr(0, 3));
  EXPECT_TRUE(channel_->CheckPeer()) << "it may be anything";
  FarSays(said.substr(3));
  const auto troubled = channel_->CheckPeer();
  ASSERT_FALSE(troubled);
  EXPECT_EQ(Describe(troubled.error()), "the other end: port down; cable");
}

TEST_F(ChannelTest, WhatIsNoFrameIsNoOtherEnd) {
  FarSays("SSH-2.0-OpenSSH_9.2\r\n");
  EXPECT_EQ(channel_->CheckPeer().error().code, ErrorCode::kMalformed);
}

TEST_F(ChannelTest, AnotherMessageThanExpected) {
  FarSays(EncodeMessage(End{}));
  EXPECT_EQ(channel_->Expect<Ready>(Late()).error().code, ErrorCode::kMalformed);
}

TEST_F(ChannelTest, AnotherProtocol) {
  FarSays("SSH-2.0-OpenSSH_9.2\r\n");
  EXPECT_EQ(channel_->Receive(Late()).error().code, ErrorCode::kMalformed);
}

// Waits for the process's end.
Result<std::string> Await(EndProcess& process) {
  for (;;) {
    pollfd waiting{process.fd(), POLLIN, 0};
    if (poll(&waiting, 1, 60'000) != 1) return Fail(ErrorCode::kTimeout, "the process says nothing");
    if (auto result = process.Read()) return *std::move(result);
  }
}

bool HasChildren() {
  return waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
}

TEST(EndProcessTest, ItsResultComesBack) {
  auto process = EndProcess::Start(nullptr, [] { return Result<std::string>("measured"); });
  ASSERT_TRUE(process);
  EXPECT_EQ(*Await(*process), "measured");
  EXPECT_FALSE(HasChildren());
}

TEST(EndProcessTest, ItsErrorComesBackWhole) {
  auto process = EndProcess::Start(nullptr, []() -> Result<std::string> {
    return Fail(Error{ErrorCode::kTimeout, "connecting", "look at the route", ETIMEDOUT});
  });
  ASSERT_TRUE(process);
  const auto result = Await(*process);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(result.error().sys_errno, ETIMEDOUT);
  EXPECT_EQ(Describe(result.error()), "connecting; look at the route");
}

TEST(EndProcessTest, OneThatDiesIsNoticed) {
  auto process = EndProcess::Start(nullptr, []() -> Result<std::string> { _exit(0); });
  ASSERT_TRUE(process);
  const auto result = Await(*process);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInternal);
  EXPECT_FALSE(HasChildren());
}

TEST(EndProcessTest, OneThatGoesOnEndsWithTheObject) {
  {
    auto process = EndProcess::Start(nullptr, []() -> Result<std::string> {
      for (;;) pause();
    });
    ASSERT_TRUE(process);
    EXPECT_FALSE(process->Read()) << "it has said nothing yet";
    EXPECT_TRUE(HasChildren());
  }
  EXPECT_FALSE(HasChildren());
}

TEST(InterruptsTest, ASignalIsReadAndHeardOnce) {
  {
    const auto interrupts = Interrupts::Catch();
    ASSERT_TRUE(interrupts);
    pollfd waiting{interrupts->fd(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 0), 0);
    ASSERT_EQ(raise(SIGINT), 0);
    EXPECT_EQ(poll(&waiting, 1, 0), 1);
  }
  // It has been heard: what follows would not be reached otherwise.
  sigset_t blocked;
  ASSERT_EQ(sigprocmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_FALSE(sigismember(&blocked, SIGINT));
}

}  // namespace
}  // namespace railhead::rdma_test
