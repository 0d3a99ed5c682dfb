// What kubelet may ask before a container starts.
#include "deviceplugin/services/kubelet/handlers.h"

#include <poll.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "cni/state/cdi_spec.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/services/kubelet/cdi_reader.h"
#include "deviceplugin/services/kubelet/check_attached.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/unique_fd.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

using std::chrono::milliseconds;

class GateTest : public TwoRails {
 protected:
  void Allocate(const std::vector<std::string>& ids) {
    const auto done = resources::Allocator(root_).Allocate(*Pool(), ids);
    ASSERT_TRUE(done) << Describe(done.error());
  }
  void Attach(const std::string& id, const std::string& container, Phase phase = Phase::kDone) {
    JournalEntry entry;
    entry.key = {"net-" + id, container, "net1"};
    entry.phase = phase;
    entry.boot_id = BootId(root_).value();
    AttachedDevice link;
    link.device = id;
    link.before.name = "pf0v0";
    link.pod_name = "net1";
    entry.devices.push_back(link);
    const auto written = Journal(root_).Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
  }
  // The refusal's text; "" when it passes.
  std::string Check(const std::vector<std::string>& ids, const std::string& more = "") const {
    const auto passed = kubelet::CheckAttached(root_, *Pool(more), ids);
    return passed ? "" : Describe(passed.error());
  }
};

TEST_F(GateTest, PassesWhenAllSiblingsAreInOneSandbox) {
  Allocate({vfs0_[0], vfs1_[0]});
  Attach(vfs0_[0], "sandbox");
  Attach(vfs1_[0], "sandbox");
  EXPECT_EQ(Check({vfs1_[0], vfs0_[0]}), "");
}

TEST_F(GateTest, NamesTheMissingDeviceAndTheAnnotation) {
  Allocate({vfs0_[0], vfs1_[0]});
  Attach(vfs0_[0], "sandbox");
  const std::string text = Check({vfs0_[0], vfs1_[0]});
  EXPECT_NE(text.find("device " + vfs1_[0]), std::string::npos) << text;
  EXPECT_NE(text.find("is attached to no pod"), std::string::npos) << text;
  EXPECT_NE(text.find("k8s.v1.cni.cncf.io/networks must name 2 networks"), std::string::npos) << text;
  EXPECT_NE(text.find("k8s.v1.cni.cncf.io/resourceName: railhead.io/roce"), std::string::npos) << text;
}

TEST_F(GateTest, AsksForSiblingsThatKubeletDoesNotName) {
  Allocate({vfs0_[0], vfs1_[0]});
  Attach(vfs0_[0], "sandbox");
  EXPECT_NE(Check({vfs0_[0]}).find(vfs1_[0]), std::string::npos);
  // The next allocation of the device alone ends that.
  Allocate({vfs0_[0]});
  EXPECT_EQ(Check({vfs0_[0]}), "");
}

TEST_F(GateTest, AnUnfinishedAttachmentDoesNotCount) {
  Allocate({vfs0_[0]});
  Attach(vfs0_[0], "sandbox", Phase::kPlanned);
  EXPECT_NE(Check({vfs0_[0]}).find("not finished (sandbox sandbox)"), std::string::npos) << Check({vfs0_[0]});
}

TEST_F(GateTest, DevicesOfTwoSandboxesDoNotPass) {
  Allocate({vfs0_[0], vfs1_[0]});
  Attach(vfs0_[0], "new");
  Attach(vfs1_[0], "old");
  const std::string text = Check({vfs0_[0], vfs1_[0]});
  EXPECT_NE(text.find("sandbox old"), std::string::npos) << text;
  EXPECT_NE(text.find("to new"), std::string::npos) << text;
}

TEST_F(GateTest, AnAttachmentOfAnEarlierBootDoesNotCount) {
  Allocate({vfs0_[0]});
  Attach(vfs0_[0], "sandbox");
  EXPECT_EQ(Check({vfs0_[0]}), "");
  sysfs_.Write("/proc/sys/kernel/random/boot_id", "another boot\n");
  EXPECT_NE(Check({vfs0_[0]}), "");
}

TEST_F(GateTest, PoolsWithoutNcclConfigPass) {
  EXPECT_EQ(Check({vfs0_[0]}, R"(, "ncclConfig": "off")"), "");
}

TEST_F(GateTest, AskingForNothingIsAnError) {
  EXPECT_NE(Check({}), "");
}

// A container runtime keeps CDI specs in memory. They are older than /run/cdi for as long as its threads wait
// for a CPU. PreStartContainer answers when the runtime has caught up.

// The CDI library works so: an event of the directory wakes a thread, which takes a mutex and reads all
// specs. The thread is late by up to `latest`.
class RuntimeStandIn {
 public:
  RuntimeStandIn(std::string directory, milliseconds latest)
      : directory_(std::move(directory)), latest_(latest), inotify_(::inotify_init1(IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(inotify_.get(), directory_.c_str(), IN_MOVED_FROM | IN_DELETE), 0);
    thread_ = std::thread([this] { Run(); });
  }
  ~RuntimeStandIn() {
    stopped_ = true;
    thread_.join();
  }
  RuntimeStandIn(const RuntimeStandIn&) = delete;
  RuntimeStandIn& operator=(const RuntimeStandIn&) = delete;

  // What CreateContainer finds of the file.
  std::string SpecOf(const std::string& file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return specs_[file];
  }

 private:
  void Run() {
    std::array<char, 4096> events;
    while (!stopped_) {
      pollfd ready{inotify_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 10) != 1) continue;
      if (::read(inotify_.get(), events.data(), events.size()) <= 0) return;
      std::this_thread::sleep_for(latest_ * static_cast<int>(random_() % 4) / 3);
      const std::lock_guard<std::mutex> lock(mutex_);
      specs_.clear();
      for (const auto& file : std::filesystem::directory_iterator(directory_)) {
        if (file.path().extension() != ".json") continue;
        specs_[file.path().filename()] = ReadFile(file.path()).value_or("").value_or("");
      }
    }
  }

  std::string directory_;
  milliseconds latest_;
  UniqueFd inotify_;
  std::mt19937 random_{3};  // of the thread
  std::mutex mutex_;
  std::map<std::string, std::string> specs_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

class CdiReadersTest : public TwoRails {
 protected:
  CdiReadersTest() { std::filesystem::create_directories(Directory()); }

  std::string Directory() const { return paths::CdiDirectory(root_); }
  // Like ADD, with new content each time.
  void WriteSpec(const std::string& id) {
    const auto written = WriteCdiSpec(root_, {.name = id, .env = {"N=" + std::to_string(++number_)}});
    ASSERT_TRUE(written) << Describe(written.error());
  }
  // The number of rounds in which a container would be refused, or get outdated content.
  int Refused(int rounds, bool awaited) {
    RuntimeStandIn runtime(Directory(), milliseconds(20));
    int refused = 0;
    for (int round = 0; round < rounds; ++round) {
      const std::string& id = vfs0_[static_cast<std::size_t>(round) % vfs0_.size()];
      WriteSpec(id);
      const std::string path = paths::CdiSpec(root_, id);
      if (awaited) {
        EXPECT_EQ(kubelet::AwaitCdiReader(root_, {id}, milliseconds(60'000)), true);
      }
      const std::string known = runtime.SpecOf(std::filesystem::path(path).filename());
      refused += known == ReadFile(path).value().value() ? 0 : 1;
      if (round % 3 == 0) {
        EXPECT_EQ(RemoveCdiSpec(root_, id), true);
      }
    }
    return refused;
  }
  // The answer to PreStartContainer, and whether it reports that no runtime read the specs.
  std::optional<bool> PreStart(const std::string& more, const std::vector<std::string>& ids) {
    v1beta1::PreStartContainerRequest request;
    for (const std::string& id : ids) request.add_device_ids(id);
    std::optional<bool> unread;
    const auto answered = kubelet::AnswerPreStart(
        root_, *Pool(R"(, "ncclConfig": "off")" + more), request,
        [&](const kubelet::ContainerCall& call) { unread = call.cdi_unread; }, milliseconds(50));
    EXPECT_TRUE(answered) << Describe(answered.error());
    return unread;
  }

 private:
  int number_ = 0;
};

TEST_F(CdiReadersTest, NoContainerIsRefused) {
  EXPECT_EQ(Refused(100, true), 0);
  EXPECT_GT(Refused(100, false), 0) << "the stand-in is not late: the test shows nothing";
}

// One pass over the directory reads all specs in it.
TEST_F(CdiReadersTest, AllDevicesOfAContainerAtOnce) {
  RuntimeStandIn runtime(Directory(), milliseconds(20));
  for (int round = 0; round < 20; ++round) {
    for (const std::string& id : vfs0_) WriteSpec(id);
    ASSERT_EQ(kubelet::AwaitCdiReader(root_, vfs0_, milliseconds(60'000)), true);
    for (const std::string& id : vfs0_) {
      const std::string path = paths::CdiSpec(root_, id);
      EXPECT_EQ(runtime.SpecOf(std::filesystem::path(path).filename()), ReadFile(path).value().value());
    }
  }
}

// In a user namespace that may have no inotify instance: other programs have used all of a node's up.
TEST_F(CdiReadersTest, WithoutInotifyTheContainerStarts) {
  WriteSpec(vfs0_[0]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    const auto write = [](const char* path, const char* text) { std::ofstream(path) << text; };
    write("/proc/self/uid_map", "0 0 1");
    write("/proc/self/setgroups", "deny");
    write("/proc/self/gid_map", "0 0 1");
    write("/proc/sys/user/max_inotify_instances", "0");
    const UniqueFd none(::inotify_init1(IN_CLOEXEC));
    if (none.valid()) ::_exit(77);
    const auto awaited = kubelet::AwaitCdiReader(root_, {vfs0_[0]}, milliseconds(60'000));
    ::_exit(awaited == false ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs a user namespace";
  EXPECT_EQ(status, 0);
}

TEST_F(CdiReadersTest, ARuntimeThatReadsNoneIsReportedAndNotWaitedForAnyLonger) {
  WriteSpec(vfs0_[0]);
  EXPECT_EQ(PreStart(R"(, "deviceNodes": "cdi")", {vfs0_[0]}), true);
  RuntimeStandIn runtime(Directory(), milliseconds(0));
  EXPECT_EQ(kubelet::AwaitCdiReader(root_, {vfs0_[0]}, milliseconds(60'000)), true);
}

// With mounted device nodes, without a spec, without the directory.
TEST_F(CdiReadersTest, WhatNamesNoCdiDeviceIsNotWaitedFor) {
  WriteSpec(vfs0_[0]);
  EXPECT_EQ(PreStart(R"(, "deviceNodes": "mount")", {vfs0_[0]}), false);
  EXPECT_EQ(PreStart(R"(, "deviceNodes": "cdi")", {vfs0_[1]}), false);
  std::filesystem::remove_all(Directory());
  EXPECT_EQ(PreStart(R"(, "deviceNodes": "cdi")", {vfs0_[1]}), false);
}

}  // namespace
}  // namespace railhead::testing
