// Announcements that the real plugin resends in real namespaces. A veth stands in for the NIC, and its other
// end sees the frames. The plugin's children become this process's own, so that it can find and wait for
// them.
#include "cni/attachment/announcement_resend.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/linux_kernel.h"
#include "tests/support/eventually.h"
#include "tests/support/netns/stand_in.h"
#include "tests/support/sysfs/fake_sysfs.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The ARP frames that arrive on a link, with the kernel's receive times.
class ArpWatch {
 public:
  using Time = std::chrono::nanoseconds;

  ArpWatch(const NetNs& ns, int index) {
    Must(OpenSocketsIn(ns, [&]() -> Result<void> {
      fd_.Reset(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ARP)));
      return fd_.valid() ? Result<void>() : FailSys(errno, "packet socket");
    }));
    sockaddr_ll at{};
    at.sll_family = AF_PACKET;
    at.sll_protocol = htons(ETH_P_ARP);
    at.sll_ifindex = index;
    const int on = 1;
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0)
      Die(SysError(errno, "listening for ARP"));
  }
  // When `address` was announced: requests in which it asks for itself.
  std::vector<Time> Announcements(const IpAddress& address, int wanted, milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    for (;;) {
      pollfd polled{fd_.get(), POLLIN, 0};
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
      const bool enough = static_cast<int>(seen_.size()) >= wanted;
      if (::poll(&polled, 1, enough ? 0 : static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0)
        return seen_;
      Receive(address);
    }
  }

 private:
  void Receive(const IpAddress& address) {
    std::array<std::uint8_t, 256> frame{};
    std::array<char, 256> control{};
    iovec io{frame.data(), frame.size()};
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    static constexpr std::size_t kSender = 28;  // protocol addresses in the frame
    static constexpr std::size_t kTarget = 38;
    if (size < static_cast<ssize_t>(kTarget + 4)) return;
    if (std::memcmp(frame.data() + kSender, address.Data(), 4) != 0) return;
    if (std::memcmp(frame.data() + kTarget, address.Data(), 4) != 0) return;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_type != SO_TIMESTAMPNS) continue;
      timespec time{};
      std::memcpy(&time, CMSG_DATA(header), sizeof time);
      seen_.push_back(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
    }
  }
  UniqueFd fd_;
  std::vector<Time> seen_;
};

// This process's children.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = ParseInt(entry.path().filename().string());
    if (!pid) continue;
    const std::string stat = ReadFileAt(entry.path().string() + "/stat");
    const auto behind_name = stat.rfind(") ");
    if (behind_name == std::string::npos) continue;
    const auto fields = Split(stat.substr(behind_name + 2), ' ');
    if (fields.size() > 1 && fields[1] == std::to_string(::getpid()))
      children.push_back(static_cast<pid_t>(*pid));
  }
  return children;
}

bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

int AwaitEnd(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// A node with one VF, and a pod.
class World {
 public:
  World() {
    sysfs_.AddPf({.address = "0000:43:00.0", .netdev = "pf0"});
    bdf_ = sysfs_.AddVfs("0000:43:00.0", 1)[0];
    pod_ = MakeNetns();
    const NetNs host = Must(NetNs::Current());
    pf_index_ = AddVeth(host, "pf0", wire_, "pf-wire");
    wire_index_ = AddVeth(wire_, "wire", host, "pf0v0");
    const auto route = OpenRoute(wire_);
    BringUp(*route, wire_index_);
    watch_.emplace(wire_, wire_index_);
  }
  ~World() {
    // The veth, wherever its other end is.
    const auto route = OpenRoute(wire_);
    if (route->FindLink(wire_index_).value_or(std::nullopt)) DeleteLink(wire_, wire_index_);
    DeleteLink(Must(NetNs::Current()), pf_index_);
    for (const pid_t child : Children()) (void)AwaitEnd(child);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Returns the plugin's exit status once its output has ended.
  int Run(const std::string& command) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0)
      Die(SysError(errno, "pipe"));
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const auto& [from, to] : {std::pair(in[0], 0), std::pair(out[1], 1), std::pair(out[1], 2)})
        ::dup2(from, to);
      Exec(command);
    }
    ::close(in[0]);
    ::close(out[1]);
    const std::string config = R"({"cniVersion":"1.0.0","name":"rails","type":"railhead","deviceID":")" +
                               bdf_ + R"(","ipam":{"type":"railhead-ipam","subnet":"10.9.0.0/24"}})";
    if (::write(in[1], config.data(), config.size()) < 0) Die(SysError(errno, "write"));
    ::close(in[1]);
    output_.clear();
    std::array<char, 4096> buffer{};
    // This ends only when every process that holds the other end has closed it.
    for (ssize_t n = 0; (n = ::read(out[0], buffer.data(), buffer.size())) > 0;)
      output_.append(buffer.data(), static_cast<std::size_t>(n));
    ::close(out[0]);
    return AwaitEnd(pid);
  }
  [[nodiscard]] const std::string& output() const { return output_; }
  [[nodiscard]] Root root() const { return sysfs_.root(); }
  [[nodiscard]] const std::string& bdf() const { return bdf_; }
  void ForgetPod() { pod_.reset(); }
  [[nodiscard]] bool WireIsThere() const {
    return OpenRoute(wire_)->FindLink(wire_index_).value_or(std::nullopt).has_value();
  }
  std::vector<ArpWatch::Time> Announcements(int wanted, milliseconds limit = kLong) {
    return watch_->Announcements(*IpAddress::Parse("10.9.0.1"), wanted, limit);
  }

 private:
  [[noreturn]] void Exec(const std::string& command) const {
    const std::string netns = "/proc/" + std::to_string(::getppid()) + "/fd/" + std::to_string(pod_->fd());
    std::vector<std::string> variables{"CNI_COMMAND=" + command,
                                       "CNI_CONTAINERID=c1",
                                       "CNI_NETNS=" + netns,
                                       "CNI_IFNAME=net1",
                                       std::string("CNI_PATH=") + PROGRAMS,
                                       "RAILHEAD_ROOT=" + sysfs_.directory()};
    std::vector<char*> environment;
    environment.reserve(variables.size() + 1);
    for (auto& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::string program = std::string(PROGRAMS) + "/railhead";
    std::array<char*, 2> arguments{program.data(), nullptr};
    ::execve(program.c_str(), arguments.data(), environment.data());
    ::_exit(127);
  }

  FakeSysfs sysfs_;
  std::string bdf_;
  NetNs wire_ = MakeNetns();
  std::optional<NetNs> pod_;
  int pf_index_ = 0;
  int wire_index_ = 0;
  std::optional<ArpWatch> watch_;
  std::string output_;
};

void ExpectSpaced(const std::vector<ArpWatch::Time>& times) {
  for (std::size_t i = 1; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 1], milliseconds(1900)) << "announcement " << i;
  }
}

TEST(RepeatProcessTest, TheRuntimeWaitsForNothingAndThreeAreSent) {
  World world;
  ASSERT_EQ(world.Run("ADD"), 0) << world.output();
  // The plugin's output has ended, but its child still runs.
  const auto children = Children();
  ASSERT_EQ(children.size(), 1U);
  const pid_t child = children[0];
  EXPECT_GE(world.Announcements(1).size(), 1U);
  // The child's start-up is over once it has its own session.
  ASSERT_TRUE(Eventually([&] { return ::getsid(child) == child; }));
  const std::string proc = "/proc/" + std::to_string(child);
  ASSERT_TRUE(Eventually([&] { return std::filesystem::read_symlink(proc + "/cwd") == "/"; }));
  EXPECT_EQ(std::filesystem::read_symlink(proc + "/ns/net"),
            std::filesystem::read_symlink("/proc/self/ns/net"));
  for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    const bool small = std::stoi(entry.path().filename()) <= STDERR_FILENO;
    if (!gone && small) {
      EXPECT_EQ(target, "/dev/null");
    }
    EXPECT_EQ(target.find("pipe:"), std::string::npos) << target;
    EXPECT_EQ(target.find("net:["), std::string::npos) << target;
    EXPECT_EQ(target.find(".lock"), std::string::npos) << target;
  }
  const auto times = world.Announcements(3);
  EXPECT_EQ(AwaitEnd(child), 0) << "it ends by itself";
  EXPECT_EQ(world.Announcements(4, milliseconds(0)).size(), 3U) << "and says no more";
  ExpectSpaced(times);
  EXPECT_EQ(world.Run("DEL"), 0) << world.output();
}

// A busy machine may delay this; a child that does not notice DEL never ends early.
TEST(RepeatProcessTest, DelEndsTheChild) {
  bool noticed = false;
  for (int round = 0; round < 10 && !noticed; ++round) {
    World world;
    ASSERT_EQ(world.Run("ADD"), 0) << world.output();
    const auto begun = Clock::now();
    const auto children = Children();
    ASSERT_EQ(children.size(), 1U);
    ASSERT_EQ(world.Run("DEL"), 0) << world.output();
    EXPECT_EQ(AwaitEnd(children[0]), 0);
    // Earlier than the child's own next check.
    noticed = Clock::now() - begun < attachment::kResendInterval;
    if (noticed) EXPECT_LT(world.Announcements(0).size(), 3U);
  }
  EXPECT_TRUE(noticed);
}

TEST(RepeatProcessTest, ANamespaceThatIsToDieDies) {
  bool seen = false;
  for (int round = 0; round < 10 && !seen; ++round) {
    World world;
    ASSERT_EQ(world.Run("ADD"), 0) << world.output();
    const auto children = Children();
    ASSERT_EQ(children.size(), 1U);
    ASSERT_TRUE(world.WireIsThere());
    world.ForgetPod();
    // A virtual device goes with its namespace, and its other end with it.
    ASSERT_TRUE(Eventually([&] { return !world.WireIsThere(); }));
    const bool was_there = !HasEnded(children[0]);
    EXPECT_EQ(AwaitEnd(children[0]), 0);
    seen = was_there && world.Announcements(0).size() < 3;
  }
  EXPECT_TRUE(seen) << "it went while the child was there";
}

TEST(RepeatProcessTest, ADelAtWorkIsNotWaitedFor) {
  World world;
  ASSERT_EQ(world.Run("ADD"), 0) << world.output();
  const auto children = Children();
  ASSERT_EQ(children.size(), 1U);
  const auto busy = FileLock::Acquire(paths::Lock(world.root(), world.bdf()), kLong);
  ASSERT_TRUE(busy);
  EXPECT_EQ(AwaitEnd(children[0]), 0);
  EXPECT_EQ(world.Announcements(2, milliseconds(0)).size(), 1U);
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests) &&
      (::unshare(CLONE_NEWNET) != 0 || ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)) {
    std::fprintf(stderr, "cannot make a private network namespace: %s\n", std::strerror(errno));
    return 1;
  }
  return RUN_ALL_TESTS();
}
