// What railheadd and the address store write, replace and clear away, with links, pipes and folders that
// somebody has planted there.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "cni/attachment/acquire.h"
#include "cni/state/allocation.h"
#include "cni/state/paths.h"
#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/late_binding/bind_server.h"
#include "deviceplugin/services/provision/pf_state.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "tests/support/plugin/plugin_fixture.h"
#include "tests/system/hardening/outside.h"

namespace railhead::testing {
namespace {
namespace fs = std::filesystem;

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
      {"/run/railhead/health.json", [&] { return WriteHealthState(root(), health::HealthState{}); }},
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

// The one file that is appended to.
TEST_F(PlantedDaemonTest, WhatWasObserved) {
  const health::HealthRules rules = health::DefaultHealthRules();
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

// Nothing of a pod that is gone lies elsewhere.
TEST_F(PlantedDaemonTest, TheReconcilerClearsNothingAwayBehindLinks) {
  const std::string device = vfs_[0][0];
  const std::string before = outside_.Listing();
  PlantFolder(Path("/run/railhead/handoff/gone"), outside_);
  PlantFolder(Path("/run/railhead/attachments/gone"), outside_);
  PlantFolder(Path("/run/railhead/handoff-device/" + device), outside_);
  const auto report = reconcile::Reconciler(root(), kernel_, reconcile::SinglePass()).Run();
  EXPECT_TRUE(report.Failed()) << ReportAsJson(report);
  EXPECT_NE(ReportAsJson(report).find("is a symbolic link"), std::string::npos) << ReportAsJson(report);
  EXPECT_EQ(outside_.Listing(), before);

  fs::remove_all(Path("/run/railhead"));
  PlantFolder(Path("/run/railhead/announce"), outside_);
  const auto none = reconcile::Reconciler(root(), kernel_, reconcile::SinglePass()).Run();
  ASSERT_EQ(none.actions.size(), 1U) << ReportAsJson(none);
  EXPECT_EQ(none.actions[0].what, "state-folder");
  EXPECT_EQ(outside_.Listing(), before);
}

TEST_F(PlantedDaemonTest, TheSocketForAdd) {
  const auto start = [&] {
    return late_binding::BindServer::Start(
        root(), [](const BindRequest&) { return Result<Bindings>(Bindings{}); },
        [](const BindRequest&, const Result<Bindings>&) {});
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
