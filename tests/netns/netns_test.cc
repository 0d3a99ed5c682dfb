// Network namespaces: handles, sockets opened in them, the forked helper.
#include "netns/ns/netns.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "netns/base/files.h"
#include "netns/linux_kernel.h"
#include "netns/ns/run_in.h"
#include "tests/netns/stand_in.h"

namespace railhead::testing {
namespace {

std::string TemporaryFile(const std::string& content) {
  std::string path = ::testing::TempDir() + "/railhead-netns-XXXXXX";
  UniqueFd fd(mkstemp(path.data()));
  std::ofstream(path) << content;
  return path;
}

TEST(NetNs, OpensByPathAndComparesByIdentity) {
  const NetNs own = Must(NetNs::Current());
  const NetNs again = Must(NetNs::Open("/proc/self/ns/net"));
  const NetNs other = MakeNetns();
  EXPECT_TRUE(own.SameAs(again));
  EXPECT_FALSE(own.SameAs(other));
  EXPECT_TRUE(other.SameAs(Duplicate(other)));
  EXPECT_EQ(again.path(), "/proc/self/ns/net");
  EXPECT_NE(own.inode(), other.inode());
}

TEST(NetNs, PathThatDoesNotExist) {
  const auto gone = NetNs::Open("/var/run/netns/no-such-namespace");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_NE(gone.error().message.find("/var/run/netns/no-such-namespace"), std::string::npos);
  EXPECT_FALSE(gone.error().hint.empty());
}

// What is left of /var/run/netns/NAME when the namespace was unmounted.
TEST(NetNs, EmptyFileInItsPlace) {
  const std::string path = TemporaryFile("");
  const auto gone = NetNs::Open(path);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  unlink(path.c_str());
}

TEST(NetNs, NamespaceOfAnotherKind) {
  const auto other = NetNs::Open("/proc/self/ns/uts");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(other.error().hint.empty());
}

TEST(NetNs, ProcessThatIsGone) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(0);
  const std::string path = "/proc/" + std::to_string(child) + "/ns/net";
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(NetNs::Open(path).error().code, ErrorCode::kNotFound);
}

TEST(NetNs, DoesNotHangOnAFifo) {
  const std::string path = TemporaryFile("");
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(NetNs::Open(path).error().code, ErrorCode::kNotFound);
  unlink(path.c_str());
}

TEST(OpenSocketsIn, RunsThereAndReturns) {
  const NetNs home = Must(NetNs::Current());
  const NetNs other = MakeNetns();
  bool there = false;
  Must(OpenSocketsIn(other, [&]() -> Result<void> {
    there = Must(NetNs::Current()).SameAs(other);
    return {};
  }));
  EXPECT_TRUE(there);
  EXPECT_TRUE(Must(NetNs::Current()).SameAs(home));

  const auto failed = OpenSocketsIn(other, []() -> Result<void> { return FailSys(EMFILE, "opening"); });
  EXPECT_EQ(failed.error().sys_errno, EMFILE);
  EXPECT_TRUE(Must(NetNs::Current()).SameAs(home));
}

TEST(OpenSocketsIn, WhatIsNoNamespaceIsRefused) {
  const NetNs fake = Must(NetNs::FromFd(UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)), "fake"));
  bool called = false;
  const auto refused = OpenSocketsIn(fake, [&]() -> Result<void> {
    called = true;
    return {};
  });
  EXPECT_FALSE(refused);
  EXPECT_FALSE(called);
}

class RunInNamespaceTest : public ::testing::Test {
 protected:
  // Every test ends with no child left.
  ~RunInNamespaceTest() override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }
  NetNs ns_ = MakeNetns();
};

TEST_F(RunInNamespaceTest, SeesThatNamespacesSysfs) {
  AddVeth(ns_, "net1", ns_, "far1");
  const auto mtu = RunInNamespace(ns_, NetDeadline(), [&]() -> Result<std::string> {
    return RH_TRY(ReadAttribute("/sys/class/net/net1/mtu")).value_or("absent");
  });
  EXPECT_EQ(Must(mtu), "1500");
  // Nothing of it shows here.
  EXPECT_EQ(Must(ReadAttribute("/sys/class/net/net1/mtu")), std::nullopt);
  EXPECT_FALSE(Must(NetNs::Current()).SameAs(ns_));
}

TEST_F(RunInNamespaceTest, CarriesErrorsWhole) {
  const auto failed = RunInNamespace(ns_, NetDeadline(), []() -> Result<std::string> {
    Error error = SysError(EBUSY, "doing it");
    error.hint = "wait";
    return Fail(std::move(error));
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kBusy);
  EXPECT_EQ(failed.error().sys_errno, EBUSY);
  EXPECT_EQ(failed.error().hint, "wait");
  EXPECT_NE(failed.error().message.find("doing it: Device or resource busy"), std::string::npos);
}

TEST_F(RunInNamespaceTest, LargeAndOddResults) {
  std::string odd(300'000, 'x');
  odd[5] = '\0';
  EXPECT_EQ(Must(RunInNamespace(ns_, NetDeadline(), [&]() -> Result<std::string> { return odd; })), odd);
  EXPECT_EQ(Must(RunInNamespace(ns_, NetDeadline(), []() -> Result<std::string> { return std::string(); })),
            "");
}

TEST_F(RunInNamespaceTest, KillsWhatTakesTooLong) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  const auto late = RunInNamespace(ns_, deadline, []() -> Result<std::string> {
    for (;;) pause();
  });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
}

TEST_F(RunInNamespaceTest, NoticesThatTheChildDied) {
  const auto died = RunInNamespace(ns_, NetDeadline(), []() -> Result<std::string> {
    raise(SIGKILL);
    return std::string();
  });
  ASSERT_FALSE(died);
  EXPECT_EQ(died.error().code, ErrorCode::kInternal);
}

TEST_F(RunInNamespaceTest, SysctlThatDoesNotExist) {
  EXPECT_EQ(ReadNetSysctl(ns_, "ipv4/conf/net9/arp_ignore").error().code, ErrorCode::kNotFound);
}

TEST_F(RunInNamespaceTest, LinuxKernelLooksThereForRdmaDevices) {
  LinuxKernel kernel{Root()};
  EXPECT_EQ(Must(kernel.ReadGids(ns_, "no-such-device")), std::nullopt);
  EXPECT_EQ(Must(kernel.ReadGids(Must(kernel.HostNetns()), "no-such-device")), std::nullopt);
}

int CountDescriptors() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

TEST(LinuxKernel, LeavesNoDescriptorBehind) {
  LinuxKernel kernel{Root()};
  const NetNs ns = MakeNetns();
  const auto use = [&] {
    auto route = Must(kernel.OpenRoute(ns));
    (void)Must(route->ListLinks());
    (void)Must(route->WaitCarrier(1, std::chrono::steady_clock::now()));
    (void)kernel.OpenRdma(ns);
    (void)kernel.Announce(ns, Link{}, {IpAddress::V4(1)});
    (void)kernel.OpenNetns("/proc/self/ns/uts");
  };
  use();
  const int before = CountDescriptors();
  for (int i = 0; i < 10; ++i) use();
  EXPECT_EQ(CountDescriptors(), before);
}

// Guests load ib_core; the machines that build rarely have it. sysfs tells which of them this is.
TEST(LinuxKernel, RdmaIsThereOrSaidToBeMissing) {
  LinuxKernel kernel{Root()};
  const auto rdma = kernel.OpenRdma(MakeNetns());
  ASSERT_EQ(rdma.has_value(), std::filesystem::exists("/sys/class/infiniband"));
  if (rdma) {
    EXPECT_TRUE((*rdma)->NetnsMode());
    EXPECT_FALSE(Must((*rdma)->DeleteRxe("no-such-device")));
    EXPECT_EQ((*rdma)->MoveDevice("no-such-device", MakeNetns()).error().code, ErrorCode::kNotFound);
  } else {
    EXPECT_EQ(rdma.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(rdma.error().hint.find("modprobe"), std::string::npos);
  }
}

TEST(LinuxKernel, RebindRefusesWhatIsNoPciAddress) {
  LinuxKernel kernel{Root()};
  EXPECT_EQ(kernel.RebindDriver("../../etc").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(kernel.RebindDriver("ffff:ff:1f.7").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace railhead::testing
