// railctl rdma-test --listen, with unwanted clients among those that connect.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "deviceplugin/tools/rdma_test/channel.h"
#include "deviceplugin/tools/rdma_test/frame_seal.h"
#include "deviceplugin/tools/rdma_test/interrupts.h"
#include "deviceplugin/tools/rdma_test/pending_connections.h"
#include "deviceplugin/tools/rdma_test/test_runner.h"
#include "deviceplugin/tools/rdma_test/wire_protocol.h"
#include "tests/support/eventually.h"
#include "tests/unit/deviceplugin/tools/rdma_test/support.h"

namespace railhead::rdma_test {
namespace {

using testing::Eventually;

TimePoint Late() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(1);
}

const sockaddr* Plain(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// A port of the loopback address. A socket that is bound and does not listen keeps it free for one that
// listens, both with SO_REUSEADDR.
UniqueFd Reserve(sockaddr_in* address) {
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  socklen_t size = sizeof(*address);
  EXPECT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
  EXPECT_EQ(bind(fd.get(), Plain(*address), size), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(address), &size), 0);
  return fd;
}

UniqueFd ConnectTo(const sockaddr_in& address) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), Plain(address), sizeof(address)) != 0) fd.Reset();
  return fd;
}

void Say(const UniqueFd& fd, const std::string& bytes) {
  ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

bool IsOpen(const UniqueFd& fd) {
  pollfd polled{fd.get(), POLLIN | POLLRDHUP, 0};
  return poll(&polled, 1, 0) == 0;
}

std::string FirstWords() {
  return EncodeMessage(SomeHello());
}

class ListenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    reserved_ = Reserve(&address_);
    listener_ = fork();
    if (listener_ == 0) Answer();
    ASSERT_TRUE(Eventually([&] { return ConnectTo(address_).valid(); })) << "nobody listens";
  }
  void TearDown() override {
    if (listener_ <= 0) return;
    kill(listener_, SIGTERM);
    int status = 0;
    while (waitpid(listener_, &status, 0) < 0 && errno == EINTR) {
    }
    EXPECT_TRUE(WIFEXITED(status)) << status;
  }
  [[noreturn]] void Answer() const {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test is killed
    const auto interrupts = Interrupts::Catch();
    ListenOptions options;
    options.keys = keys_;
    options.address = *http::ParseHttpAddress("127.0.0.1:" + std::to_string(ntohs(address_.sin_port)));
    TestEnd end;
    end.name = "host";
    _exit(interrupts && Listen(end, options, *interrupts, [](const Result<void>&) {}) ? 0 : 1);
  }

  std::shared_ptr<const SharedKeys> keys_;
  sockaddr_in address_{};
  UniqueFd reserved_;
  pid_t listener_ = -1;
};

TEST_F(ListenTest, WhoSaysNothingKeepsNobodyWaiting) {
  const UniqueFd silent = ConnectTo(address_);
  const UniqueFd half = ConnectTo(address_);
  Say(half, FirstWords().substr(0, kFrameHeader + 2));
  UniqueFd good = ConnectTo(address_);
  Say(good, FirstWords());
  // The device does not exist here, but the listener has looked for it.
  const auto answer = Channel(std::move(good)).Receive(Late());
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().message.starts_with("the other end: ")) << answer.error().message;
  EXPECT_TRUE(IsOpen(silent)) << "the good one had to wait until it was given up";
  EXPECT_TRUE(IsOpen(half));
  // A message that arrives in pieces gets an answer.
  Say(half, FirstWords().substr(kFrameHeader + 2));
  pollfd polled{half.get(), POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 60'000), 1) << "nobody answers it";
}

class ListenWithKeysTest : public ListenTest {
 protected:
  void SetUp() override {
    keys_ =
        std::make_shared<const SharedKeys>(*SharedKeys::Parse("00112233445566778899aabbccddeeff", "keys"));
    ListenTest::SetUp();
  }
  // What the listening end says to a hello that is signed with these.
  Error AnswerTo(const std::shared_ptr<const SharedKeys>& keys) {
    const Channel channel(ConnectTo(address_), keys, EndRole::kStarting);
    EXPECT_TRUE(channel.Send(SomeHello(), Late()));
    const auto answer = channel.Receive(Late());
    EXPECT_FALSE(answer) << "there is no such device here";
    return answer ? Error{} : answer.error();
  }
};

// The attack: a host that reaches the port gets a queue pair, and loads the rail.
TEST_F(ListenWithKeysTest, WhoHasNoKeyIsNotServed) {
  const auto other = std::make_shared<const SharedKeys>(*SharedKeys::Parse(std::string(32, 'f'), "keys"));
  EXPECT_EQ(AnswerTo(nullptr).code, ErrorCode::kPermission);
  EXPECT_EQ(AnswerTo(other).code, ErrorCode::kPermission);
  const Error asked = AnswerTo(keys_);
  EXPECT_NE(asked.code, ErrorCode::kPermission) << asked.message;
  EXPECT_TRUE(IsFromPeer(asked)) << "it looked for the device: " << asked.message;
}

TEST_F(ListenTest, ManyWhoSayNothingTakeAllPlacesFromNobody) {
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < 3 * PendingConnections::kMost; ++i) silent.push_back(ConnectTo(address_));
  UniqueFd good = ConnectTo(address_);
  Say(good, FirstWords());
  EXPECT_FALSE(Channel(std::move(good)).Receive(Late()));
  EXPECT_FALSE(IsOpen(silent.front())) << "there is an end to their number";
  EXPECT_TRUE(IsOpen(silent.back()));
}

// Both ends of a TCP connection.
class PendingConnectionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = Reserve(&address_);
    ASSERT_EQ(listen(listener_.get(), 64), 0);
  }
  // The other end.
  UniqueFd Enter(TimePoint until = Late()) {
    UniqueFd far = ConnectTo(address_);
    EXPECT_TRUE(far.valid());
    pending_.Add(UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)), until);
    return far;
  }
  bool IsAnyReady() { return pending_.TakeReady().has_value(); }
  [[nodiscard]] bool WouldWake() const {
    bool any = false;
    for (const int fd : pending_.fds()) {
      pollfd polled{fd, POLLIN, 0};
      any = any || poll(&polled, 1, 0) > 0;
    }
    return any;
  }

  sockaddr_in address_{};
  UniqueFd listener_;
  PendingConnections pending_;
};

TEST_F(PendingConnectionsTest, ReadyWhenTheMessageIsComplete) {
  const UniqueFd far = Enter();
  const std::string words = FirstWords();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    Say(far, words.substr(i, 1));
    EXPECT_FALSE(IsAnyReady()) << i;
    EXPECT_FALSE(WouldWake()) << i << ": it would turn in circles until the rest comes";
  }
  Say(far, words.substr(words.size() - 1));
  ASSERT_TRUE(Eventually([&] { return WouldWake(); }));
  auto ready = pending_.TakeReady();
  ASSERT_TRUE(ready);
  EXPECT_TRUE(pending_.fds().empty());
  EXPECT_EQ(*Channel(std::move(*ready)).Expect<Hello>(Late()), SomeHello()) << "nothing was taken from it";
}

TEST_F(PendingConnectionsTest, ReadyWhenTheMessageWillNeverBeComplete) {
  const std::string words = FirstWords();
  {
    const UniqueFd far = Enter();
    Say(far, "GET / HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(Eventually([&] { return IsAnyReady(); })) << "another protocol";
  }
  for (const std::size_t said : {std::size_t{0}, std::size_t{5}, kFrameHeader, kFrameHeader + 1}) {
    UniqueFd far = Enter();
    if (said > 0) Say(far, words.substr(0, said));
    far.Reset();
    EXPECT_TRUE(Eventually([&] { return WouldWake(); })) << said;
    EXPECT_TRUE(Eventually([&] { return IsAnyReady(); })) << "gone after " << said;
  }
}

TEST_F(PendingConnectionsTest, TheOldestIsClosedFirst) {
  std::vector<UniqueFd> far;
  for (std::size_t i = 0; i < PendingConnections::kMost + 2; ++i) far.push_back(Enter());
  EXPECT_EQ(pending_.DropExpired(std::chrono::steady_clock::now()), 2U);
  EXPECT_EQ(pending_.fds().size(), PendingConnections::kMost);
  EXPECT_TRUE(Eventually([&] { return !IsOpen(far[1]); }));
  EXPECT_TRUE(IsOpen(far[2]));
}

TEST_F(PendingConnectionsTest, TimeIsUp) {
  const TimePoint now = std::chrono::steady_clock::now();
  EXPECT_EQ(pending_.NextDeadline(), std::nullopt);
  const UniqueFd early = Enter(now + std::chrono::seconds(1));
  const UniqueFd late = Enter(now + std::chrono::hours(1));
  EXPECT_EQ(pending_.NextDeadline(), now + std::chrono::seconds(1));
  EXPECT_EQ(pending_.DropExpired(now), 0U);
  EXPECT_EQ(pending_.DropExpired(now + std::chrono::seconds(1)), 1U);
  EXPECT_EQ(pending_.NextDeadline(), now + std::chrono::hours(1));
  EXPECT_TRUE(IsOpen(late));
}

}  // namespace
}  // namespace railhead::rdma_test
