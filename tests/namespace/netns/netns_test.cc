// Network namespaces: handles, sockets opened in them, the forked helper.
#include "netns/ns/netns.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/linux_kernel.h"
#include "netns/ns/mount_propagation.h"
#include "netns/ns/run_in_namespace.h"
#include "tests/support/netns/stand_in.h"

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

// The remains of /var/run/netns/NAME after the namespace was unmounted.
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
  const NetNs original = Must(NetNs::Current());
  const NetNs other = MakeNetns();
  bool there = false;
  Must(OpenSocketsIn(other, [&]() -> Result<void> {
    there = Must(NetNs::Current()).SameAs(other);
    return {};
  }));
  EXPECT_TRUE(there);
  EXPECT_TRUE(Must(NetNs::Current()).SameAs(original));

  const auto failed = OpenSocketsIn(other, []() -> Result<void> { return FailSys(EMFILE, "opening"); });
  EXPECT_EQ(failed.error().sys_errno, EMFILE);
  EXPECT_TRUE(Must(NetNs::Current()).SameAs(original));
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

// The nearest mount counts, and the latest of several at one place. Mounts above or beside it do not.
TEST(PropagationTest, ByTheMountThatHasTheDirectory) {
  const auto line = [](const std::string& at, const std::string& tags) {
    return "36 35 98:0 /x " + at + " rw,noatime" + tags + " - ext4 /dev/root rw\n";
  };
  for (const auto& [tags, propagates] :
       {std::pair("", false), std::pair(" shared:1", true), std::pair(" master:2", true),
        std::pair(" unbindable", false), std::pair(" shared:1 master:2", true)}) {
    SCOPED_TRACE(tags);
    const std::string beside =
        line("/run/netns2", propagates ? "" : " shared:9") + line("/run/netns/pod", "");
    for (const char* at : {"/", "/run", "/run/netns"})
      EXPECT_EQ(PropagatesTo(line(at, tags) + beside, "/run/netns"), propagates) << at;
    for (const char* above : {"", " shared:3"}) {
      EXPECT_EQ(PropagatesTo(line("/", above) + line("/run/netns", tags), "/run/netns"), propagates);
      EXPECT_EQ(PropagatesTo(line("/run/netns", tags) + line("/", above), "/run/netns"), propagates);
      EXPECT_EQ(PropagatesTo(line("/run/netns", above) + line("/run/netns", tags), "/run/netns"), propagates);
    }
  }
  EXPECT_TRUE(PropagatesTo("", "/run/netns")) << "nothing is known";
}

// On the kernel's own mountinfo: this test's mount namespace is made private, shared and a slave.
TEST(PropagationTest, OfThisProcess) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string directory = ::testing::TempDir();
    const auto with = [&](unsigned long how) {
      return mount("none", directory.c_str(), nullptr, how, nullptr) == 0 &&
             SeesMountsOfHost(Root(""), directory).value_or(how == MS_PRIVATE);
    };
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(directory.c_str(), directory.c_str(), nullptr, MS_BIND, nullptr) != 0)
      _exit(1);
    if (with(MS_PRIVATE)) _exit(2);
    if (!with(MS_SHARED)) _exit(3);
    _exit(with(MS_PRIVATE) ? 4 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
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
  // This namespace's sysfs does not show it.
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

// The child has open its three standard descriptors, the namespace, the pipe and the directory that it reads.
Result<std::string> DescriptorsOfChild() {
  const auto names = RH_TRY(ListDirectory("/proc/self/fd"));
  return std::to_string(names.value_or(std::vector<std::string>{}).size());
}

// close_range(2) is ENOSYS from here on, as before Linux 5.9 and under railheadd's unit of an older version.
void ForbidCloseRange() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {static_cast<unsigned short>(std::size(code)), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(100);
}

TEST_F(RunInNamespaceTest, HasNoDescriptorOfItsParentsThreads) {
  std::vector<UniqueFd> open_here;
  for (int i = 0; i < 40; ++i) {
    open_here.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    // Makes gaps, so that the descriptors that the child keeps lie between the others.
    if (i % 3 == 0) open_here[static_cast<std::size_t>(i / 2)].Reset();
  }
  EXPECT_EQ(Must(RunInNamespace(ns_, NetDeadline(), DescriptorsOfChild)), "6");
  const pid_t old_kernel = fork();
  ASSERT_GE(old_kernel, 0);
  if (old_kernel == 0) {
    ForbidCloseRange();
    const auto count = RunInNamespace(ns_, NetDeadline(), DescriptorsOfChild);
    _exit(count ? std::stoi(*count) : 101);
  }
  int status = 0;
  ASSERT_EQ(waitpid(old_kernel, &status, 0), old_kernel);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 6);
}

// A lock belongs to the open file description, which a child shares. Still, when another thread releases its
// lock, the lock is free, however long the child runs.
TEST_F(RunInNamespaceTest, KeepsNoLockOfAnotherThread) {
  const std::string path = TemporaryFile("");
  const std::string begun = path + ".begun";
  const std::string ended = path + ".ended";
  auto lock = std::make_optional(Must(FileLock::Acquire(path, std::chrono::milliseconds(0))));
  std::thread helper([&] {
    const auto said = RunInNamespace(ns_, NetDeadline(), [&]() -> Result<std::string> {
      RH_TRY(WriteAtomic(begun, "", Sync::kVolatile));
      while (!Exists(ended)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return std::string("done");
    });
    EXPECT_EQ(Must(said), "done");
  });
  while (!Exists(begun)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  lock.reset();
  const auto again = FileLock::Acquire(path, std::chrono::milliseconds(0));
  EXPECT_TRUE(again) << Describe(again.error());
  Must(WriteAtomic(ended, "", Sync::kVolatile));
  helper.join();
  for (const auto& file : {path, begun, ended}) unlink(file.c_str());
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

// Guests load ib_core; build machines rarely have it. sysfs shows which kind this machine is.
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
