// Files and soft RoCE devices without an owner.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "cni/attachment/nccl_step.h"
#include "cni/nccl/nccl_config_files.h"
#include "cni/state/displaced_names.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"
#include "netns/base/unique_fd.h"
#include "netns/sys/rdma_sysfs.h"
#include "tests/support/daemon/reconciler_fixture.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class LeftoverTest : public ReconcilerFixture {
 protected:
  [[nodiscard]] std::string Spec(const std::string& bdf) const {
    return "/run/cdi/railhead-" + bdf + ".json";
  }
  [[nodiscard]] FileLock Hold(const std::string& name) const {
    auto lock = FileLock::Acquire(paths::Lock(sysfs_.root(), name), seconds(0));
    EXPECT_TRUE(lock);
    return std::move(*lock);
  }
};

TEST_F(LeftoverTest, DevicesThatAreHeldWithoutAnEntry) {
  const Journal journal(sysfs_.root());
  ASSERT_TRUE(Add(AllRails(1)));
  WriteFileAt(paths::Lock(sysfs_.root(), Bdf(0)), "c9/n@net1.json\n");
  WriteFileAt(paths::Lock(sysfs_.root(), Bdf(2)), "no path of an entry");
  {
    const auto busy = Hold(Bdf(0));
    EXPECT_EQ(Did(), "held-device " + Bdf(2) + ": no attachment has it\n");
    EXPECT_TRUE(journal.HeldDevices().contains(Bdf(0))) << "an ADD of it is at work";
  }
  EXPECT_EQ(Did(), "held-device " + Bdf(0) + ": no attachment has it\n");
  EXPECT_FALSE(journal.HeldDevices().contains(Bdf(0)));
  EXPECT_TRUE(journal.HeldDevices().contains(Bdf(0, 1))) << "that has one";
  EXPECT_EQ(Did(), "");
}

TEST_F(LeftoverTest, ADeviceGetsItsOwnNameBackWhenItIsFree) {
  const Call call{.config = Usual(0)};
  ASSERT_TRUE(Add(call));
  const int foreign_netdev = kernel_.state().AddNetdev(kHost, "pf0v0").id;
  kernel_.Sync();
  const auto deleted = Del(call);
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  const std::string substitute = SubstituteName(Bdf(0));
  EXPECT_EQ(kernel_.state().OfFunction(Bdf(0))->link.name, substitute);
  EXPECT_EQ(Did(), "") << "its own is still taken";
  kernel_.state().RemoveNetdev(foreign_netdev);
  {
    const auto busy = Hold(Bdf(0));
    EXPECT_EQ(Did(), "") << "an ADD of it is at work";
  }
  EXPECT_EQ(Did(), "name " + Bdf(0) + ": its own name is free again\n");
  EXPECT_EQ(kernel_.state().OfFunction(Bdf(0))->link.name, "pf0v0");
  EXPECT_EQ(Files(), "");
  EXPECT_EQ(Did(), "");
}

// The fabric names the rail by the PF's own name.
TEST_F(LeftoverTest, ADeviceUnderASubstituteNameKeepsItsRail) {
  const Call call{.config = Usual(0)};
  ASSERT_TRUE(Add(call));
  const std::string rail = Journal(sysfs_.root()).FindByDevice(Bdf(0)).value()->devices[0].rail;
  ASSERT_NE(rail, "");
  ASSERT_TRUE(Del(call));
  FakeNetdev& pf = *kernel_.state().OfFunction(kernel_.state().Function(Bdf(0))->pf);
  ASSERT_TRUE(WriteDisplacedNames(sysfs_.root(), pf.bdf, {pf.link.name, {}}));
  pf.link.name = SubstituteName(pf.bdf);
  (void)kernel_.state().AddNetdev(kHost, "pf0");
  kernel_.Sync();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(Journal(sysfs_.root()).FindByDevice(Bdf(0)).value()->devices[0].rail, rail);
  ASSERT_TRUE(Del(call));
}

TEST_F(LeftoverTest, AnEntryThatDoesNotNameTheDeviceDoesNotHoldIt) {
  ASSERT_TRUE(Add({.network = "one", .config = Usual(0)}));
  WriteFileAt(paths::Lock(sysfs_.root(), Bdf(1)), "c1/one@net1.json\n");
  EXPECT_EQ(Did(), "held-device " + Bdf(1) + ": no attachment has it\n");
  EXPECT_TRUE(Check({.network = "one", .config = Usual(0)}));
}

TEST_F(LeftoverTest, WhatKilledWritersOfTheJournalLeft) {
  ASSERT_TRUE(Add(AllRails()));
  const std::string journal = "/run/railhead/attachments/";
  WriteFileAt(Path(journal + "c1/rails@net1.json.new"), "{\"half");
  WriteFileAt(Path(journal + "c7/rails@net1.json.new"), "");
  fs::create_directories(Path(journal + "c8"));
  Did();
  EXPECT_FALSE(IsThere(journal + "c1/rails@net1.json.new"));
  EXPECT_FALSE(IsThere(journal + "c7"));
  EXPECT_FALSE(IsThere(journal + "c8"));
  EXPECT_TRUE(Check(AllRails()));
  EXPECT_EQ(Did(), "");
}

// A living writer holds a lock. The file's time decides nothing, since the clock can be set in either
// direction at any time.
TEST_F(LeftoverTest, ALiveWritersFileStaysWhateverTheClockSays) {
  for (const StateFolder& folder : StateFolders()) {
    if (folder.owner == StateOwner::kStore) continue;  // which has a lock of its own
    std::string path(folder.path);
    if (folder.owner == StateOwner::kSandbox) path += "/c7";
    path.append("/").append(folder.prefix).append("x").append(folder.suffix).append(kTemporarySuffix);
    for (const int age : {-86'400, 0, 11, 86'400}) {
      SCOPED_TRACE(path + ", changed " + std::to_string(age) + " s ago");
      WriteFileAt(Path(path), "");
      fs::last_write_time(Path(path), fs::file_time_type::clock::now() - seconds(age));
      reconcile::Reconciler reconciler(sysfs_.root(), kernel_);  // its passes repeat
      {
        const UniqueFd writer(::open(Path(path).c_str(), O_WRONLY | O_CLOEXEC));
        ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
        const auto sandbox = attachment::LockSandbox(sysfs_.root(), "c7", seconds(0));
        EXPECT_EQ(ListActions(reconciler.Run()), "");
        EXPECT_TRUE(IsThere(path));
      }
      EXPECT_NE(ListActions(reconciler.Run()).find(Path(path).substr(Path(path).rfind('/') + 1)),
                std::string::npos);
      EXPECT_FALSE(IsThere(path));
    }
  }
  for (const char* parent : {"attachments", "nccl"})
    EXPECT_FALSE(IsThere(std::string("/run/railhead/") + parent + "/c7"));
}

// Somebody has put a link to another place where a sandbox's folder was.
TEST_F(LeftoverTest, NothingIsRemovedBehindALink) {
  const TempRoot outside;
  outside.Write("/x.new", "somebody's");
  for (const char* parent : {"attachments", "nccl"}) {
    const std::string link = std::string("/run/railhead/") + parent + "/c7";
    fs::create_directories(Path(link).substr(0, Path(link).rfind('/')));
    fs::create_directory_symlink(outside.directory(), Path(link));
    const auto report = Once();
    EXPECT_TRUE(report.Failed());
    EXPECT_NE(ListActions(report).find(Path(link) + " is a symbolic link"), std::string::npos)
        << ListActions(report);
    EXPECT_TRUE(outside.Exists("/x.new"));
    fs::remove(Path(link));
  }
}

TEST_F(LeftoverTest, ASocketInTheMakingStaysWhateverTheClockSays) {
  const std::string path = "/run/railhead/bind.sock.77";
  for (const int age : {-86'400, 0, 86'400}) {
    WriteFileAt(Path(path), "");
    fs::last_write_time(Path(path), fs::file_time_type::clock::now() - seconds(age));
    {
      const auto maker = FileLock::Acquire(paths::BindSocketLock(sysfs_.root()), seconds(0));
      ASSERT_TRUE(maker) << Describe(maker.error());
      EXPECT_EQ(Did(), "");
      EXPECT_TRUE(IsThere(path)) << age;
    }
    EXPECT_EQ(Did(), "partial-file " + Path(path) + ": its writer was killed\n");
  }
}

// Writers and passes at the same time: no write fails, and none is lost.
TEST_F(LeftoverTest, PassesDisturbNoWriter) {
  const Root root = sysfs_.root();
  const Journal journal(root);
  const reconcile::ReconcileOptions options;
  const std::stop_token never;
  std::atomic<bool> done{false};
  std::thread passes([&] {
    while (!done) {
      reconcile::ReconcileReport report;
      reconcile::ReconcilePass pass{root, kernel_, journal, options, never, report};
      reconcile::ReconcilePartialFiles(pass);
      EXPECT_FALSE(report.Failed()) << ListActions(report);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    JournalEntry entry;
    entry.key = {"rails", "c7", "net1"};
    entry.boot_id = *BootId(root);
    const auto written = journal.Write(entry);
    EXPECT_TRUE(written) << i << ": " << Describe(written.error());
    EXPECT_TRUE(IsThere("/run/railhead/attachments/c7/rails@net1.json")) << i;
    if (!written || HasFailure()) break;
    EXPECT_TRUE(journal.Remove(entry));
  }
  done = true;
  passes.join();
}

// Files of a railheadd that was killed in Allocate, or at its start.
TEST_F(LeftoverTest, WhatAKilledDaemonLeftOfItsOwn) {
  const std::vector<std::string> left{
      "/var/lib/railhead/allocations/" + Bdf(0) + ".json.new",
      "/var/run/k8s.cni.cncf.io/devinfo/dp/a.io-x-" + Bdf(0) + "-device.json.new",
      "/run/cdi/railheadd-" + Bdf(0) + ".json.new",
      "/run/railhead/lldp.json.new",
      "/var/lib/railhead/drains.json.new",
      "/run/railhead/bind.sock.77"};
  const std::vector<std::string> kept{"/var/lib/railhead/allocations/" + Bdf(0) + ".json",
                                      "/var/run/k8s.cni.cncf.io/devinfo/dp/theirs.new",
                                      "/run/cdi/theirs.json.new", "/run/railhead/bind.sock"};
  for (const auto& path : left) WriteFileAt(Path(path), "{");
  for (const auto& path : kept) WriteFileAt(Path(path), "{}");
  {
    // A file that is being written at this moment.
    const UniqueFd writer(::open(Path(left[0]).c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
    Did();
    EXPECT_TRUE(IsThere(left[0]));
    for (std::size_t i = 1; i < left.size(); ++i) EXPECT_FALSE(IsThere(left[i])) << left[i];
  }
  EXPECT_EQ(Did(), "partial-file " + Path(left[0]) + ": its writer was killed\n");
  for (const auto& path : kept) EXPECT_TRUE(IsThere(path)) << path;
  EXPECT_EQ(Did(), "");
}

// Another railheadd on the same /run/cdi, with a state folder of its own, has specs there by the same names.
TEST_F(LeftoverTest, CdiSpecsOfOursOnly) {
  const Call second{.network = "one", .container = "c2", .config = Usual(1)};
  ASSERT_TRUE(Add(AllRails()));
  ASSERT_TRUE(Add(second));
  ForgetEntry(second);
  const std::vector<std::string> foreign{"/run/cdi/nvidia.json",
                                         "/run/cdi/railhead-gpu.json",
                                         Spec(Bdf(0, 2)),
                                         Spec("slot-a.io-roce-0-0"),
                                         "/run/cdi/railhead-" + Bdf(0, 2) + ".yaml",
                                         "/run/cdi/railhead-" + Bdf(0, 2) + ".json.old"};
  for (const auto& path : foreign) WriteFileAt(Path(path), "{}");
  {
    const auto busy = Hold(Bdf(0, 1));
    EXPECT_EQ(Did().find("cdi-spec"), std::string::npos) << "an ADD of it is at work";
  }
  EXPECT_NE(Did().find("cdi-spec railhead-" + Bdf(0, 1) + ".json: no attachment has it\n"),
            std::string::npos);
  EXPECT_FALSE(IsThere(Spec(Bdf(0, 1))));
  for (const auto& path : foreign) EXPECT_TRUE(IsThere(path)) << path;
  for (int rail = 0; rail < 3; ++rail) EXPECT_TRUE(IsThere(Spec(Bdf(rail)))) << "the live pod's";
  EXPECT_EQ(Did(), "");
}

// Another program uses the same folder, and deletes or changes files that it does not know.
TEST_F(LeftoverTest, CdiSpecsOfLivingPodsAreWrittenAgain) {
  ASSERT_TRUE(Add(AllRails()));
  std::map<std::string, std::string> specs;
  for (int rail = 0; rail < 3; ++rail) specs[Spec(Bdf(rail))] = File(Spec(Bdf(rail)));
  const auto intact = [&] {
    return std::all_of(specs.begin(), specs.end(),
                       [&](const auto& spec) { return File(spec.first) == spec.second; });
  };
  ASSERT_TRUE(intact());
  for (const auto& [path, text] : specs) {
    for (const char* content : {"", "{}", "removed"}) {
      if (content == std::string("removed")) {
        Remove(path);
      } else {
        WriteFileAt(Path(path), content);
      }
      EXPECT_EQ(Did(), "cdi-spec-rewrite " + path.substr(path.rfind('/') + 1) +
                           ": somebody has removed or changed it\n");
      EXPECT_TRUE(intact());
    }
  }
  fs::remove_all(Path("/run/cdi"));
  EXPECT_NE(Did(), "");
  EXPECT_TRUE(intact());
  EXPECT_EQ(Did(), "");
  ASSERT_TRUE(Del(AllRails()));
  EXPECT_EQ(Files(), "") << "the records, too";
}

// A writer in another process locks its file while it writes. A killed writer holds no lock.
TEST_F(LeftoverTest, ACdiSpecThatIsBeingWrittenIsLeftAlone) {
  const std::string path = Spec(Bdf(0)) + ".new";
  WriteFileAt(Path(path), "{");
  {
    const UniqueFd writer(::open(Path(path).c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
    EXPECT_EQ(Did(), "");
    EXPECT_TRUE(IsThere(path));
  }
  EXPECT_EQ(Did(), "partial-file " + Path(path) + ": its writer was killed\n");
  EXPECT_FALSE(IsThere(path));
}

TEST_F(LeftoverTest, NcclConfigsOfSandboxesWithoutAnEntry) {
  ASSERT_TRUE(Add(AllRails()));
  WriteFileAt(Path("/run/railhead/nccl/c1/nccl.conf.new"), "half");
  WriteFileAt(Path("/run/railhead/nccl/c9/nccl.conf"), "NCCL_IB_HCA==x\n");
  WriteFileAt(Path("/run/railhead/nccl/c9/nccl.conf.new"), "half");
  {
    const auto busy = attachment::LockSandbox(sysfs_.root(), "c9", seconds(0));
    ASSERT_TRUE(busy);
    std::string partial_files;
    for (const char* path : {"/run/railhead/nccl/c1/nccl.conf.new", "/run/railhead/nccl/c9/nccl.conf.new"})
      partial_files.append("partial-file ").append(Path(path)).append(": its writer was killed\n");
    EXPECT_EQ(Did(), partial_files);
    EXPECT_TRUE(IsThere("/run/railhead/nccl/c9/nccl.conf"));
  }
  EXPECT_EQ(Did(), "nccl-config c9: no attachment has it\n");
  EXPECT_FALSE(IsThere("/run/railhead/nccl/c9"));
  EXPECT_FALSE(IsThere("/run/railhead/nccl/c1/nccl.conf.new"));
  EXPECT_TRUE(Check(AllRails()));
  EXPECT_EQ(Did(), "");
}

// An ADD writes them before its entry is done; its entry is there all the same.
TEST_F(LeftoverTest, FilesOfAnAddAtWorkAreItsOwn) {
  ASSERT_TRUE(Add(AllRails()));
  std::string text = File(EntryOf(AllRails()));
  text.replace(text.find("\"done\""), 6, "\"planned\"");
  WriteFileAt(Path(EntryOf(AllRails())), text);
  const auto before = World();
  const auto busy = Hold(Bdf(0));
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(LeftoverTest, DeviceNcclConfigsAreEmptiedNotRemoved) {
  Allocate({Bdf(0), Bdf(1), Bdf(2)}, DeviceNodeMode::kMount);
  ASSERT_TRUE(Add(AllRails()));
  const std::string live = nccl::DeviceNcclConfigPath(sysfs_.root(), Bdf(0));
  const std::string dead = nccl::DeviceNcclConfigPath(sysfs_.root(), Bdf(0, 1));
  ASSERT_TRUE(nccl::WriteDeviceNcclConfig(sysfs_.root(), Bdf(0, 1), "NCCL_IB_HCA==x\n"));
  EXPECT_EQ(Did(), "device-nccl-config " + Bdf(0, 1) + ": no attachment has it\n");
  EXPECT_TRUE(fs::exists(dead)) << "a container may have it mounted";
  EXPECT_EQ(ReadFileAt(dead), "");
  EXPECT_NE(ReadFileAt(live), "");
  EXPECT_EQ(Did(), "");
}

class SoftRoceTest : public LeftoverTest {
 protected:
  void MakeNics() override {
    vfs_.push_back(kernel_.AddPf({.address = "0000:43:00.0", .netdev = "pf0"}, {.count = 3}));
    vfs_.push_back(kernel_.AddPf({.address = "0000:83:00.0", .netdev = "pf1"}, {.count = 3}));
    vfs_.push_back(kernel_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2"}, {.count = 3}));
  }
  void SetUp() override {
    LeftoverTest::SetUp();
    WriteRails({{"rail0", "pf0"}, {"rail1", "pf1"}, {"rail2", "pf2"}}, R"(,"softRoce":true)");
  }
  void Rxe(const std::string& name, const std::string& netdev, const std::string& ns = kHost) {
    ASSERT_EQ(kernel_.state().AddRxe(ns, name, netdev), 0) << name;
    kernel_.Sync();
  }
};

TEST_F(SoftRoceTest, OursOnTheHostGoes) {
  ASSERT_TRUE(Add(AllRails()));
  ASSERT_NE(kernel_.state().Rdma("rxe_pf0v0"), nullptr) << "the pod's";
  Rxe("rxe_pf0v1", "pf0v1");
  EXPECT_EQ(Did(), "soft-roce rxe_pf0v1: its VF is on the host and no attachment has it\n");
  EXPECT_EQ(kernel_.state().Rdma("rxe_pf0v1"), nullptr);
  EXPECT_TRUE(Check(AllRails()));
}

TEST_F(SoftRoceTest, ThoseOfOthersStay) {
  kernel_.AddVeth(pod_, "pf0v2", kHost, "veth9");
  Rxe("rxe0", "pf1v0");
  Rxe("rxe_pf0", "pf0");
  Rxe("rxe_pf9v0", "pf2v0");
  Rxe("rxe_pf0v7", "pf2v1");
  Rxe("rxe_pf0v1", "pf1v1");
  // sysfs lists the same netdev name as our VF has. But it is another netdev, in a pod.
  Rxe("rxe_pf0v2", "pf0v2", pod_);
  const auto before = World();
  EXPECT_EQ(Did(), "");
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(SoftRoceTest, AnAddOfTheVfIsNotDisturbed) {
  Rxe("rxe_pf0v1", "pf0v1");
  const auto busy = Hold(Bdf(0, 1));
  EXPECT_EQ(Did(), "");
  EXPECT_NE(kernel_.state().Rdma("rxe_pf0v1"), nullptr);
}

// While a device is being removed, reading its attribute gives ENODEV before the attribute disappears
// (kernfs_fop_open). A ptmx node (5, 2) gives the same error if the "pts" beside it is not a devpts
// (devpts_acquire).
TEST_F(SoftRoceTest, OneThatLeavesWhileItIsLookedAtIsNoFailure) {
  Rxe("rxe_pf0v1", "pf0v1");
  Rxe("rxe_pf1v1", "pf1v1");
  const TempRoot disk;  // file systems in memory are mounted without device nodes
  fs::create_directory(disk.directory() + "/pts");
  ASSERT_EQ(::mknod((disk.directory() + "/ptmx").c_str(), S_IFCHR | 0600, ::makedev(5, 2)), 0) << errno;
  const std::string attribute = Path("/sys/class/infiniband/rxe_pf0v1/parent");
  fs::remove(attribute);
  fs::create_symlink(disk.directory() + "/ptmx", attribute);
  const auto parent = RxeParentOf(sysfs_.root(), "rxe_pf0v1");
  ASSERT_TRUE(parent) << Describe(parent.error());
  ASSERT_FALSE(*parent) << "the kernel answers ENODEV";
  EXPECT_EQ(Did(), "soft-roce rxe_pf1v1: its VF is on the host and no attachment has it\n");
}

}  // namespace
}  // namespace railhead::testing
