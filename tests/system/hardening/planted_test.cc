// Links, pipes and folders that an attacker has planted in the plugin's state. The plugin writes, changes and
// removes nothing outside, and its error names the place.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "cni/state/allocation.h"
#include "cni/state/paths.h"
#include "deviceplugin/services/fabric_follow/follower.h"
#include "deviceplugin/services/health/health_recorder.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/provision/pf_state.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "ipam/store/store.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "tests/support/plugin/plugin_fixture.h"
#include "tests/support/service/bind_server.h"
#include "tests/system/hardening/outside.h"

namespace railhead::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFolders = {"/run/railhead",
                                           "/run/railhead/attachments",
                                           "/run/railhead/nccl",
                                           "/run/railhead/nccl-device",
                                           "/run/railhead/locks",
                                           "/run/railhead/provision",
                                           "/run/cdi",
                                           "/var/lib/railhead",
                                           "/var/lib/railhead/allocations",
                                           "/var/lib/railhead/ipam",
                                           "/var/run/k8s.cni.cncf.io/devinfo"};
const std::vector<std::string> kStates = {"/run/railhead", "/run/cdi", "/var/lib/railhead"};

class PlantedTest : public PluginFixture {
 protected:
  [[nodiscard]] std::string Path(const std::string& path) const { return sysfs_.directory() + path; }
  // The error of every verb; "" for a verb that succeeded.
  std::vector<std::string> AllVerbs() {
    const Call usual{.config = Usual(), .cni_version = "1.1.0"};
    std::vector<std::string> said;
    const auto say = [&](const auto& result) {
      said.push_back(result ? "" : result.error().message + "; " + result.error().hint);
    };
    say(Add(usual));
    say(Del(usual));
    say(Check(usual));
    say(Gc({}, usual));
    say(Status(Usual()));
    return said;
  }
  void ExpectRefused(const std::string& folder, const std::string& why) {
    const std::string kernel = kernel_.Snapshot();
    const std::string outside = outside_.Listing();
    for (const std::string& said : AllVerbs()) {
      EXPECT_NE(said.find(Path(folder) + " "), std::string::npos) << folder << ": " << said;
      EXPECT_NE(said.find(why), std::string::npos) << said;
    }
    EXPECT_EQ(outside_.Listing(), outside) << folder;
    EXPECT_EQ(kernel_.Snapshot(), kernel) << folder;
  }

  TempRoot elsewhere_{TempRoot::Where::kMemory};
  Outside outside_{elsewhere_.directory() + "/outside"};
};

TEST_F(PlantedTest, AFolderThatIsALinkIsRefusedByEveryVerb) {
  for (const std::string& folder : kFolders) {
    PlantFolder(Path(folder), outside_);
    ExpectRefused(folder, "is a symbolic link");
    fs::remove(Path(folder));
  }
  ASSERT_TRUE(Add({.config = Usual()})) << "nothing else was in the way";
}

TEST_F(PlantedTest, AFolderThatOthersMayChangeIsRefusedByEveryVerb) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  for (const std::string& folder : kFolders) {
    fs::create_directories(Path(folder));
    ASSERT_EQ(::chmod(Path(folder).c_str(), 01777), 0);
    ExpectRefused(folder, "may be written to by others");
    ASSERT_EQ(::chmod(Path(folder).c_str(), 0755), 0);
    ASSERT_EQ(::chown(Path(folder).c_str(), 4711, 0), 0);
    ExpectRefused(folder, "belongs to user 4711");
    ASSERT_EQ(::chown(Path(folder).c_str(), 0, 4711), 0);
    ASSERT_EQ(::chmod(Path(folder).c_str(), 0775), 0);
    ExpectRefused(folder, "may be written to by others");
    ASSERT_EQ(::chmod(Path(folder).c_str(), 0755), 0);
  }
  ASSERT_TRUE(Add({.config = Usual()})) << "a group that may only read is no harm";
}

TEST_F(PlantedTest, AFolderThatIsAFileIsRefused) {
  for (const std::string& folder : kFolders) {
    fs::remove_all(Path(folder));
    WriteFileAt(Path(folder), "");
    ExpectRefused(folder, "is not a directory");
    fs::remove(Path(folder));
  }
}

TEST_F(PlantedTest, WhoHoldsATopMustNotBeOpenToAll) {
  fs::create_directories(Path("/run/railhead"));
  ASSERT_EQ(::chmod(Path("/run").c_str(), 0777), 0);
  ExpectRefused("/run", "may be changed by others");
  ASSERT_EQ(::chmod(Path("/run").c_str(), 01777), 0);
  EXPECT_TRUE(Add({.config = Usual()})) << "the sticky bit keeps what is root's";
}

// Links above the state belong to the system: /var/run is a link to /run everywhere.
TEST_F(PlantedTest, LinksAboveTheStateAreFollowed) {
  fs::remove_all(Path("/var/run"));
  fs::create_directories(Path("/var"));
  fs::create_directories(Path("/run/k8s.cni.cncf.io"));
  fs::create_directory_symlink("../run", Path("/var/run"));
  EXPECT_TRUE(Add({.config = Usual()}));
}

TEST_F(PlantedTest, TheFoldersOfOnePod) {
  const std::string device = vfs_[0][0];
  for (const DeviceNodeMode device_nodes : {DeviceNodeMode::kCdi, DeviceNodeMode::kMount}) {
    Allocate({device}, device_nodes);
    for (const std::string& folder : std::vector<std::string>{"/run/railhead/attachments/c1",
                                                              device_nodes == DeviceNodeMode::kCdi
                                                                  ? "/run/railhead/nccl/c1"
                                                                  : "/run/railhead/nccl-device/" + device}) {
      const std::string clean = World();
      PlantFolder(Path(folder), outside_);
      const std::string outside = outside_.Listing();
      const auto added = Add({.config = Usual()});
      ASSERT_FALSE(added) << folder;
      EXPECT_NE(added.error().message.find(Path(folder)), std::string::npos) << added.error().message;
      (void)Del({.config = Usual()});
      EXPECT_EQ(outside_.Listing(), outside) << folder;
      fs::remove(Path(folder));
      const auto deleted = Del({.config = Usual()});
      EXPECT_TRUE(deleted) << Describe(deleted.error());
      EXPECT_EQ(ChangedSince(clean), "") << folder;
    }
  }
}

// Plants at every name that ADD writes, and at the temporary name that it writes first.
TEST_F(PlantedTest, AtEveryNameThatAnAddMakes) {
  const Call usual{.config = Usual()};
  Allocate({vfs_[0][0]});
  ASSERT_TRUE(Add(usual));
  auto names = StateFiles(sysfs_.directory(), kStates);
  ASSERT_TRUE(Del(usual));
  ASSERT_GT(names.size(), 6U) << Join(names, " ");
  const std::string record = File("/var/lib/railhead/allocations/" + vfs_[0][0] + ".json");
  const std::string clean = kernel_.Snapshot();
  for (const std::string& name : names) {
    for (const char* suffix : {"", ".new"}) {
      for (const Planted kind : kAllPlanted) {
        SCOPED_TRACE(name + suffix + " is a " + NameOf(kind));
        Plant(kind, Path(name + suffix), outside_);
        const std::string outside = ReadFileAt(outside_.Victim());
        const auto mode = fs::status(outside_.Victim()).permissions();
        (void)Add(usual);
        (void)Del(usual);
        EXPECT_EQ(ReadFileAt(outside_.Victim()), outside);
        EXPECT_EQ(fs::status(outside_.Victim()).permissions(), mode);
        // Removes the planted thing, so that the next one starts clean.
        fs::remove(Path(name + suffix));
        for (const char* state : {"/run/railhead", "/run/cdi"}) fs::remove_all(Path(state));
        WriteFileAt(Path("/var/lib/railhead/allocations/" + vfs_[0][0] + ".json"), record);
      }
    }
  }
  EXPECT_EQ(kernel_.Snapshot(), clean);
}

TEST_F(PlantedTest, AMountedNcclConfigIsNotWrittenThroughALink) {
  Allocate({vfs_[0][0]}, DeviceNodeMode::kMount);
  const std::string path = Path("/run/railhead/nccl-device/" + vfs_[0][0] + "/nccl.conf");
  for (const Planted kind : kAllPlanted) {
    Plant(kind, path, outside_);
    const std::string outside = outside_.Listing();
    const auto added = Add({.config = Usual()});
    ASSERT_FALSE(added) << NameOf(kind);
    EXPECT_NE(added.error().message.find(path), std::string::npos) << added.error().message;
    EXPECT_EQ(outside_.Listing(), outside) << NameOf(kind);
    fs::remove(path);
    ASSERT_TRUE(Del({.config = Usual()})) << NameOf(kind);
  }
}

TEST_F(PlantedTest, ALockThatIsALinkIsNamed) {
  const std::string path = Path("/run/railhead/locks/" + vfs_[0][0] + ".lock");
  for (const Planted kind : kAllPlanted) {
    Plant(kind, path, outside_);
    const auto added = Add({.config = Usual()});
    ASSERT_FALSE(added) << NameOf(kind);
    EXPECT_NE(added.error().message.find(path), std::string::npos) << added.error().message;
    fs::remove(path);
  }
}

// Another user could read a file that the plugin writes, and change it while the plugin relies on it.
TEST_F(PlantedTest, AFileOfAnotherUserIsNotOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Allocate({vfs_[0][0]}, DeviceNodeMode::kMount);
  for (const std::string& name : {"/run/railhead/locks/" + vfs_[0][0] + ".lock",
                                  "/run/railhead/nccl-device/" + vfs_[0][0] + "/nccl.conf",
                                  std::string("/run/railhead/attachments/c1/rail0@net1.json.new")}) {
    WriteFileAt(Path(name), "theirs");
    ASSERT_EQ(::chown(Path(name).c_str(), 4711, 4711), 0);
    const auto added = Add({.config = Usual()});
    ASSERT_FALSE(added) << name;
    EXPECT_NE(added.error().message.find(Path(name) + ": it belongs to user 4711"), std::string::npos)
        << added.error().message;
    EXPECT_EQ(ReadFileAt(Path(name)), "theirs");
    fs::remove(Path(name));
    (void)Del({.config = Usual()});
  }
  EXPECT_TRUE(Add({.config = Usual()}));
}

// The caller may have any umask. Containers' users can read files that are mounted into containers, and no
// others.
TEST_F(PlantedTest, ModesOfWhatAnAddMakes) {
  Allocate({vfs_[0][0]});
  for (const char* state : {"/run/railhead", "/run/cdi"}) fs::remove_all(Path(state));
  const mode_t umask_before = ::umask(0);
  const auto added = Add({.config = Usual()});
  ::umask(umask_before);
  ASSERT_TRUE(added) << Describe(added.error());
  int seen = 0;
  for (const char* state : {"/run/railhead", "/run/cdi"}) {
    for (const auto& entry : fs::recursive_directory_iterator(Path(state))) {
      struct stat status {};
      ASSERT_EQ(::lstat(entry.path().c_str(), &status), 0);
      if (S_ISLNK(status.st_mode)) continue;
      ++seen;
      const std::string path = entry.path().string().substr(sysfs_.directory().size());
      const bool for_containers = path.starts_with("/run/cdi/") || path.starts_with("/run/railhead/nccl/");
      const unsigned mode = status.st_mode & 07777U;
      if (S_ISDIR(status.st_mode)) {
        EXPECT_TRUE(mode == 0755 || mode == 0700) << path << std::oct << " " << mode;
        EXPECT_TRUE(mode == 0700 || !path.starts_with("/run/railhead/attachments")) << path;
      } else {
        EXPECT_EQ(mode, for_containers ? 0644U : 0600U) << path;
      }
    }
  }
  EXPECT_GT(seen, 8);
}

// Files that railheadd and the address store write, replace and remove, with links, pipes and folders that an
// attacker has planted there.

class PlantedDaemonTest : public PluginFixture {
 protected:
  [[nodiscard]] std::string Path(const std::string& path) const { return sysfs_.directory() + path; }
  [[nodiscard]] Root root() const { return sysfs_.root(); }

  TempRoot elsewhere_{TempRoot::Where::kMemory};
  Outside outside_{elsewhere_.directory() + "/outside"};
};

struct Writer {
  const char* file;
  std::function<Result<void>()> write;
};

TEST_F(PlantedDaemonTest, FilesOfTheDaemon) {
  const PciAddress pf = *PciAddress::Parse("0000:43:00.0");
  const std::vector<Writer> writers = {
      {"/run/railhead/health.json", [&] { return health::kHealthFile.Write(root(), health::HealthState{}); }},
      {"/run/railhead/fabric-follow.json",
       [&] {
         return fabric_follow::kFollowFile.Write(root(), {"/config/fabric.json", {}, {}});
       }},
      {"/run/railhead/provision/0000:43:00.0",
       [&] { return MarkUnderWay(root(), pf, provision::BeforeChange{}); }},
      {"/var/lib/railhead/allocations/slot-1.json",
       [&] {
         AllocationRecord record;
         record.resource = "a.io/roce";
         record.device_id = "slot-1";
         return WriteAllocation(root(), record);
       }},
  };
  for (const Writer& writer : writers) {
    ASSERT_TRUE(writer.write()) << writer.file;
    ASSERT_TRUE(fs::is_regular_file(Path(writer.file))) << "the name is another one: " << writer.file;
    for (const Planted kind : kAllPlanted) {
      Plant(kind, Path(writer.file) + ".new", outside_);
      std::string before = outside_.Listing();
      const auto written = writer.write();
      ASSERT_FALSE(written) << writer.file << " " << NameOf(kind);
      EXPECT_NE(written.error().message.find(Path(writer.file) + ".new"), std::string::npos)
          << written.error().message;
      EXPECT_EQ(outside_.Listing(), before);
      fs::remove(Path(writer.file) + ".new");
      Plant(kind, Path(writer.file), outside_);
      EXPECT_TRUE(writer.write()) << "a name is taken, and not what was behind it";
      EXPECT_EQ(ReadFileAt(outside_.Victim()), "mine: victim");
      EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(Path(writer.file))));
    }
    const std::string before = outside_.Listing();
    const std::string folder = fs::path(Path(writer.file)).parent_path();
    PlantFolder(folder, outside_);
    const auto written = writer.write();
    ASSERT_FALSE(written) << writer.file;
    EXPECT_NE(written.error().message.find(folder + " is a symbolic link"), std::string::npos)
        << written.error().message;
    EXPECT_EQ(outside_.Listing(), before);
    fs::remove(folder);
  }
}

// The only file to which railheadd appends.
TEST_F(PlantedDaemonTest, WhatWasObserved) {
  const health::HealthRules rules;
  const health::HealthMonitor monitor(rules);
  health::HealthRecorder recorder(root());
  const auto write = [&] {
    recorder.Begin(health::HealthTime::Now(), rules, monitor);
    return recorder.End(true);
  };
  const std::string path = Path("/run/railhead/observations.jsonl");
  ASSERT_TRUE(write());
  ASSERT_TRUE(fs::is_regular_file(path));
  for (const Planted kind : kAllPlanted) {
    Plant(kind, path, outside_);
    const std::string before = outside_.Listing();
    const auto written = write();
    ASSERT_FALSE(written) << NameOf(kind);
    EXPECT_NE(written.error().message.find(path), std::string::npos) << written.error().message;
    EXPECT_EQ(outside_.Listing(), before) << NameOf(kind);
    fs::remove(path);
    EXPECT_TRUE(write());
  }
  PlantFolder(Path("/run/railhead"), outside_);
  const std::string before = outside_.Listing();
  ASSERT_FALSE(write());
  EXPECT_EQ(outside_.Listing(), before);
}

TEST_F(PlantedDaemonTest, TheAddressStore) {
  const std::string folder = Path("/var/lib/railhead/ipam");
  ASSERT_TRUE(ipam::AddressStore::Open(root()));
  struct stat status {};
  ASSERT_EQ(::stat((folder + "/store.mdb").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  for (const char* name : {"/store.mdb", "/lock"}) {
    for (const Planted kind : kAllPlanted) {
      Plant(kind, folder + name, outside_);
      const std::string before = outside_.Listing();
      const auto opened = ipam::AddressStore::Open(root());
      ASSERT_FALSE(opened) << name << " " << NameOf(kind);
      EXPECT_NE(opened.error().message.find(folder + name), std::string::npos) << opened.error().message;
      EXPECT_EQ(outside_.Listing(), before) << name << " " << NameOf(kind);
      fs::remove(folder + name);
    }
  }
  for (const Planted kind : kAllPlanted) {
    Plant(kind, folder + "/store.mdb.new", outside_);
    EXPECT_TRUE(ipam::AddressStore::Open(root())) << NameOf(kind);
    EXPECT_EQ(ReadFileAt(outside_.Victim()), "mine: victim") << NameOf(kind);
    fs::remove(folder + "/store.mdb");
  }
  const std::string before = outside_.Listing();
  PlantFolder(folder, outside_);
  const auto opened = ipam::AddressStore::Open(root());
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find(folder + " is a symbolic link"), std::string::npos);
  EXPECT_FALSE(ipam::AddressStore::CheckPlace(root())) << "STATUS says so before an ADD fails";
  EXPECT_EQ(outside_.Listing(), before);
}

// The reconciler removes files of ended pods, but never behind a link.
TEST_F(PlantedDaemonTest, TheReconcilerClearsNothingAwayBehindLinks) {
  const std::string device = vfs_[0][0];
  const std::string before = outside_.Listing();
  PlantFolder(Path("/run/railhead/nccl/gone"), outside_);
  PlantFolder(Path("/run/railhead/attachments/gone"), outside_);
  PlantFolder(Path("/run/railhead/nccl-device/" + device), outside_);
  const auto report = reconcile::Reconciler(root(), kernel_, reconcile::SinglePass()).Run();
  EXPECT_TRUE(report.Failed()) << record::Dump(ToJson(report));
  EXPECT_NE(record::Dump(ToJson(report)).find("is a symbolic link"), std::string::npos)
      << record::Dump(ToJson(report));
  EXPECT_EQ(outside_.Listing(), before);

  fs::remove_all(Path("/run/railhead"));
  PlantFolder(Path("/run/railhead/tenants"), outside_);
  const auto none = reconcile::Reconciler(root(), kernel_, reconcile::SinglePass()).Run();
  ASSERT_EQ(none.actions.size(), 1U) << record::Dump(ToJson(none));
  EXPECT_EQ(none.actions[0].what, "state-folder");
  EXPECT_EQ(outside_.Listing(), before);
}

TEST_F(PlantedDaemonTest, TheSocketForAdd) {
  const auto start = [&] {
    return StartBindServer(root(), [](const BindRequest&) { return Result<Bindings>(Bindings{}); });
  };
  const std::string path = paths::BindSocket(root());
  for (const Planted kind : kAllPlanted) {
    Plant(kind, path, outside_);
    Plant(kind, path + "." + std::to_string(::getpid()), outside_);
    const mode_t umask_before = ::umask(0);
    const auto server = start();
    ::umask(umask_before);
    ASSERT_TRUE(server) << Describe(server.error());
    struct stat status {};
    ASSERT_EQ(::lstat(path.c_str(), &status), 0);
    EXPECT_TRUE(S_ISSOCK(status.st_mode)) << NameOf(kind);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    struct stat victim {};
    ASSERT_EQ(::lstat(outside_.Victim().c_str(), &victim), 0);
    EXPECT_EQ(victim.st_mode & 07777U, 0644U) << NameOf(kind);
    EXPECT_EQ(ReadFileAt(outside_.Victim()), "mine: victim");
  }
  fs::remove_all(Path("/run/railhead"));
  PlantFolder(Path("/run/railhead"), outside_);
  const std::string before = outside_.Listing();
  EXPECT_FALSE(start());
  EXPECT_EQ(outside_.Listing(), before);
}

}  // namespace
}  // namespace railhead::testing
