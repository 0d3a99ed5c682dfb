// sysctls and processes of a network namespace.
#include "netns/ns/sysctl.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "netns/linux_kernel.h"
#include "netns/ns/netns.h"
#include "netns/ns/processes.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

using Values = std::vector<std::optional<std::string>>;

class SysctlTest : public ::testing::Test {
 protected:
  std::optional<std::string> Read(const NetNs& ns, const std::string& path) {
    return Must(ReadSysctls(ns, {path})).at(0);
  }
  NetNs pod_ = MakeNetns();
  NetNs other_ = MakeNetns();
  // A name with a dot, as VLAN interfaces have.
  const int index_ = AddVeth(pod_, "nic.5", other_, "nic.5");
  const std::string ignore_ = "net/ipv4/conf/nic.5/arp_ignore";
  const std::string announce_ = "net/ipv4/conf/nic.5/arp_announce";
  LinuxKernel kernel_{Root()};
};

TEST_F(SysctlTest, AreOfTheNamespace) {
  EXPECT_EQ(Must(ReadSysctls(pod_, {ignore_, announce_})), (Values{"0", "0"}));
  Must(kernel_.WriteSysctls(pod_, {{ignore_, "8"}, {announce_, "2"}}));
  EXPECT_EQ(Must(kernel_.ReadSysctls(pod_, {announce_, ignore_})), (Values{"2", "8"})) << "in order";
  EXPECT_EQ(Must(ReadSysctls(other_, {announce_, ignore_})), (Values{"0", "0"}));
  EXPECT_EQ(Read(Must(NetNs::Current()), ignore_), std::nullopt) << "no such interface here";
}

TEST_F(SysctlTest, WhatAMoveDoesToThem) {
  Must(WriteSysctls(other_, {{"net/ipv4/conf/default/arp_ignore", "2"}}));
  Must(WriteSysctls(pod_, {{ignore_, "8"}, {announce_, "1"}}));
  Must(OpenRoute(pod_)->MoveLink(index_, other_, "net1", {}));
  EXPECT_EQ(Must(ReadSysctls(other_, {"net/ipv4/conf/net1/arp_ignore", "net/ipv4/conf/net1/arp_announce"})),
            (Values{"2", "0"}))
      << "as the target's default says";
}

TEST_F(SysctlTest, SeveralWordsAndOtherGroups) {
  Must(WriteSysctls(pod_, {{"net/ipv4/ip_local_port_range", "40000 50000"}, {"net/core/somaxconn", "17"}}));
  EXPECT_EQ(Must(ReadSysctls(pod_, {"net/ipv4/ip_local_port_range", "net/core/somaxconn"})),
            (Values{"40000\t50000", "17"}));
  Must(WriteSysctls(pod_, {}));
  EXPECT_EQ(Must(ReadSysctls(pod_, {})), Values{});
}

TEST_F(SysctlTest, AbsentOnesAreReadAsNothing) {
  EXPECT_EQ(Must(ReadSysctls(pod_, {"net/ipv4/conf/nosuch/arp_ignore", ignore_, "net/ipv4/no_such_thing"})),
            (Values{std::nullopt, "0", std::nullopt}));
}

TEST_F(SysctlTest, AnUnknownOneIsSetNeitherNorAreTheOthers) {
  const auto refused = WriteSysctls(pod_, {{ignore_, "8"}, {"net/ipv4/conf/nic.5/nosuch", "1"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_NE(refused.error().message.find("net.ipv4.conf.nic/5.nosuch"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().hint, "");
  EXPECT_EQ(Read(pod_, ignore_), "0");
}

TEST_F(SysctlTest, StopsAtTheFirstThatIsRefused) {
  for (const char* value : {"many", ""}) {
    Must(WriteSysctls(pod_, {{ignore_, "0"}}));
    const auto refused = WriteSysctls(pod_, {{ignore_, "8"}, {announce_, value}, {ignore_, "1"}});
    ASSERT_FALSE(refused) << value;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_NE(refused.error().message.find("net.ipv4.conf.nic/5.arp_announce"), std::string::npos);
    EXPECT_NE(refused.error().message.find(std::string("\"") + value + "\""), std::string::npos);
    EXPECT_EQ(Read(pod_, ignore_), "8");
  }
}

TEST_F(SysctlTest, PathsThatAreNoneOfANamespace) {
  for (const char* path :
       {"", "net", "net/", "/net/ipv4/ip_forward", "kernel/hostname", "net/../kernel/hostname",
        "net/ipv4/./ip_forward", "net//ipv4/ip_forward", "net.ipv4.ip_forward"}) {
    const auto read = ReadSysctls(pod_, {path});
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
    const auto set = WriteSysctls(pod_, {{ignore_, "8"}, {path, "1"}});
    ASSERT_FALSE(set) << path;
    EXPECT_EQ(set.error().code, ErrorCode::kInvalid);
  }
  EXPECT_EQ(ReadSysctls(pod_, {"net/ipv4"}).error().code, ErrorCode::kInvalid) << "a directory";
  EXPECT_EQ(WriteSysctls(pod_, {{"net/ipv4/conf", "1"}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ReadSysctls(pod_, {"net/ipv4/route/flush"}).error().code, ErrorCode::kPermission) << "write-only";
  EXPECT_EQ(Read(pod_, ignore_), "0");
}

// A child that is in `ns` once it is constructed, until it ends.
class Resident {
 public:
  explicit Resident(const NetNs& ns) {
    int ready[2];
    if (pipe(ready) != 0) Die(SysError(errno, "making a pipe"));
    pid_ = fork();
    if (pid_ == 0) {
      const bool in = setns(ns.fd(), CLONE_NEWNET) == 0;
      if (!in || write(ready[1], "x", 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte = 0;
    const bool is_in = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (!is_in) Die(Error{ErrorCode::kInternal, "the child did not enter the namespace", "", 0});
  }
  ~Resident() {
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
  }
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;
  // It is a zombie afterwards.
  void Kill() const {
    siginfo_t info{};
    (void)kill(pid_, SIGKILL);
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0) Die(SysError(errno, "waitid"));
  }

 private:
  pid_t pid_ = -1;
};

TEST(Processes, OfANamespace) {
  const NetNs ns = MakeNetns();
  EXPECT_TRUE(Must(HasProcesses(Must(NetNs::Current()))));
  EXPECT_FALSE(Must(HasProcesses(ns))) << "held by a descriptor only";
  LinuxKernel kernel{Root()};
  {
    const Resident resident(ns);
    EXPECT_TRUE(Must(kernel.HasProcesses(ns)));
    resident.Kill();
    EXPECT_FALSE(Must(kernel.HasProcesses(ns))) << "a zombie is in none";
  }
  EXPECT_FALSE(Must(HasProcesses(ns)));
}

}  // namespace
}  // namespace railhead::testing
