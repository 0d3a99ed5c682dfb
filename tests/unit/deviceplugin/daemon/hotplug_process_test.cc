// railheadd while its node or configuration changes. It takes the change up without a restart, and without
// touching unchanged resources.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/services/health/state_file.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/sysfs/silent_file.h"

namespace railhead::testing {
namespace {

// A resource for each of the rails pf0, pf1 and pf2. The PF of the last one does not exist yet.
std::string ThreePools(const std::string& vlan = "7") {
  return R"({"version": 1, "rails": [
    {"name": "rail0", "pf": "pf0", "vlan": )" +
         vlan + R"(}, {"name": "rail1", "pf": "pf1"}, {"name": "rail2", "pf": "pf2"}], "pools": [
    {"resource": "a.io/rail0", "rails": ["rail0"]}, {"resource": "a.io/rail1", "rails": ["rail1"]},
    {"resource": "a.io/rail2", "rails": ["rail2"]}]})";
}

// For the calling thread and the processes that it starts.
bool RefuseUevents() {
  constexpr std::uint32_t kFamily = offsetof(seccomp_data, args[0]);
  constexpr std::uint32_t kProtocol = offsetof(seccomp_data, args[2]);
  std::array<sock_filter, 8> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFamily),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kProtocol),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_KOBJECT_UEVENT, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class HotplugTest : public KubeletTest {
 protected:
  HotplugTest() { sysfs_.Write("/etc/railhead/fabric.json", ThreePools()); }

  void SetUp() override {
    ASSERT_TRUE(kubelet_.Start());
    daemon_ = RunDaemon({"--resync-interval", "3600"});
    ASSERT_TRUE(kubelet_.Devices("a.io/rail0", 4, Soon())) << daemon_->err();
    ASSERT_TRUE(kubelet_.Devices("a.io/rail1", 4, Soon())) << daemon_->err();
    ASSERT_TRUE(Eventually([&] { return kubelet_.Lists("a.io/rail2") == 1; })) << daemon_->err();
    // kubelet has its lists from the start's discovery. What the node looked like is known after the next
    // one, which has ended when health is written.
    ASSERT_TRUE(Eventually([&] { return Exists(health::kHealthFile.PathIn(root_)); })) << daemon_->err();
  }
  void TearDown() override { EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err(); }

  // To railheadd, where the real kubelet has it.
  void ShowCheckpoint() {
    std::filesystem::create_directories(root_.Path("/var/lib/kubelet"));
    std::filesystem::create_directory_symlink(directory_, root_.Path("/var/lib/kubelet/device-plugins"));
  }
  bool AwaitDevices(const std::string& resource, std::size_t count) {
    return Eventually([&] { return kubelet_.Present(resource).size() == count; });
  }
  // kubelet keeps the devices of a process that has ended.
  bool AwaitListOfNext(const std::string& resource) {
    return Eventually([&] { return kubelet_.Registrations(resource) >= 2 && kubelet_.Lists(resource) > 0; });
  }
  // Nothing has changed for the resource: kubelet got its first list and no other.
  void ExpectUntouched(const std::string& resource) {
    EXPECT_EQ(kubelet_.Lists(resource), 1) << resource;
    EXPECT_EQ(kubelet_.Registrations(resource), 1) << resource;
  }

  DeviceManager kubelet_{directory_};
  std::unique_ptr<Process> daemon_;
};

TEST_F(HotplugTest, VfsThatComeAndGo) {
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "mlx5_2"});
  const auto vfs = sysfs_.AddVfs("0000:c3:00.0", 4, {.rdma = "{pf}_rdma{n}"});
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(AwaitDevices("a.io/rail2", 4)) << daemon_->err();
  EXPECT_TRUE(Logs(*daemon_, "advertised devices changed"));
  const auto given = kubelet_.Allocate("a.io/rail2", 1);
  ASSERT_TRUE(given) << Describe(given.error());
  EXPECT_EQ(given->ids, std::vector<std::string>{vfs[0]});

  sysfs_.Unbind(vfs[1]);
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(AwaitDevices("a.io/rail2", 3)) << daemon_->err();
  const auto left = kubelet_.Present("a.io/rail2");
  EXPECT_TRUE(std::all_of(left.begin(), left.end(),
                          [&](const SeenDevice& device) { return device.healthy && device.id != vfs[1]; }));
  EXPECT_EQ(kubelet_.Registrations("a.io/rail2"), 1) << "the stream stays";
  ExpectUntouched("a.io/rail0");
  ExpectUntouched("a.io/rail1");
}

// Another CNI plugin has moved the PF into a pod: the host no longer sees its name.
TEST_F(HotplugTest, APfThatIsAwayKeepsItsResource) {
  sysfs_.MoveToPod(kPf1);
  sysfs_.Unbind(vfs0_[1]);  // says when discovery has run
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(AwaitDevices("a.io/rail0", 3)) << daemon_->err();
  EXPECT_EQ(kubelet_.Present("a.io/rail1").size(), 4U) << daemon_->err();
  ExpectUntouched("a.io/rail1");

  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  daemon_ = RunDaemon({"--resync-interval", "3600"});
  ASSERT_TRUE(AwaitListOfNext("a.io/rail1")) << daemon_->err();
  EXPECT_EQ(kubelet_.Present("a.io/rail1").size(), 4U) << daemon_->err();
}

// railheadd notices the file itself, without a signal.
TEST_F(HotplugTest, AnotherConfiguration) {
  std::string fabric = ThreePools();
  const std::string rail1 = R"({"resource": "a.io/rail1", "rails": ["rail1"]})";
  const std::string more = R"({"resource": "a.io/more", "rails": ["rail1"]})";
  fabric.replace(fabric.find(rail1), rail1.size(), more);
  sysfs_.Write("/etc/railhead/fabric.json", fabric);
  ASSERT_TRUE(AwaitDevices("a.io/more", 4)) << daemon_->err();
  EXPECT_TRUE(AwaitDevices("a.io/rail1", 0)) << "offered no more, and its capacity is gone at once";
  EXPECT_EQ(kubelet_.Registrations("a.io/rail1"), 1);
  ExpectUntouched("a.io/rail0");

  sysfs_.Write("/etc/railhead/fabric.json", ThreePools());
  ASSERT_TRUE(AwaitDevices("a.io/rail1", 4)) << "offered again";
  EXPECT_TRUE(AwaitDevices("a.io/more", 0));
}

// kubelet replaces a ConfigMap by renaming a link to another directory.
TEST_F(HotplugTest, AConfigMapThatIsReplaced) {
  const std::string directory = sysfs_.directory() + "/etc/railhead";
  for (const char* version : {"1", "2"}) {
    sysfs_.Write(std::string("/etc/railhead/..") + version + "/fabric.json",
                 version == std::string("1") ? ThreePools() : TwoRailFabric());
  }
  std::filesystem::create_symlink("..1", directory + "/..data");
  std::filesystem::remove(directory + "/fabric.json");
  std::filesystem::create_symlink("..data/fabric.json", directory + "/fabric.json");
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(Logs(*daemon_, "discovery requested"));
  std::filesystem::create_symlink("..2", directory + "/..data_tmp");
  std::filesystem::rename(directory + "/..data_tmp", directory + "/..data");
  EXPECT_TRUE(AwaitDevices(kResource, 8)) << daemon_->err();
}

TEST_F(HotplugTest, ABrokenConfigurationChangesNothing) {
  sysfs_.Write("/etc/railhead/fabric.json", ThreePools("4095"));
  ASSERT_TRUE(Logs(*daemon_, "/rails/0/vlan"));
  EXPECT_TRUE(Logs(*daemon_, "the last valid configuration stays in use"));
  ExpectUntouched("a.io/rail0");
  EXPECT_EQ(kubelet_.Present("a.io/rail0").size(), 4U);

  // Without a valid configuration a hardware change takes no effect. It takes effect once the file is valid.
  sysfs_.Unbind(vfs1_[0]);
  sysfs_.Write("/etc/railhead/fabric.json", ThreePools("8"));
  ASSERT_TRUE(AwaitDevices("a.io/rail1", 3)) << daemon_->err();
  ExpectUntouched("a.io/rail0");
}

// railheadd would only apply it at the next start, and fail then.
TEST_F(HotplugTest, ABrokenProvisionIsReportedAtOnce) {
  std::string fabric = ThreePools();
  fabric.insert(1, R"("provision": {"vfs": "many"}, )");
  sysfs_.Write("/etc/railhead/fabric.json", fabric);
  ASSERT_TRUE(Logs(*daemon_, "/provision/vfs"));
  EXPECT_TRUE(Logs(*daemon_, "the last valid configuration stays in use"));
  ExpectUntouched("a.io/rail0");
}

// kubelet keeps its records by resource: it would allocate the device again.
TEST_F(HotplugTest, ADeviceThatAPodHasIsNotGivenOutUnderAnotherName) {
  ShowCheckpoint();
  ASSERT_TRUE(kubelet_.Allocate("a.io/rail1", 1)) << daemon_->err();
  std::string fabric = ThreePools();
  for (auto at = fabric.find("a.io/rail1"); at != std::string::npos; at = fabric.find("a.io/rail1"))
    fabric.replace(at, 10, "a.io/other");
  sysfs_.Write("/etc/railhead/fabric.json", fabric);
  ASSERT_TRUE(AwaitDevices("a.io/other", 4)) << daemon_->err();
  EXPECT_TRUE(Logs(*daemon_, "under another resource's name"));
  for (const SeenDevice& device : kubelet_.Present("a.io/other"))
    EXPECT_EQ(device.healthy, device.id != vfs1_[0]) << device.id;
  EXPECT_FALSE(kubelet_.Allocate("a.io/other", 4)) << "one of them is a pod's";
}

// kubelet keeps the allocation as long as the pod is there, so it also keeps the device in its numbers.
TEST_F(HotplugTest, ADeviceThatAPodHasLostStaysInTheListUntilThePodEnds) {
  ShowCheckpoint();
  ASSERT_TRUE(kubelet_.Allocate("a.io/rail1", 1)) << daemon_->err();
  sysfs_.Unbind(vfs1_[0]);
  sysfs_.Unbind(vfs1_[1]);
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(AwaitDevices("a.io/rail1", 3)) << daemon_->err();
  for (const SeenDevice& device : kubelet_.Present("a.io/rail1"))
    EXPECT_EQ(device.healthy, device.id != vfs1_[0]) << device.id;
  EXPECT_FALSE(kubelet_.PreStart("a.io/rail1", {vfs1_[0]})) << "it is gone";

  EXPECT_EQ(daemon_->Stop(), 0) << daemon_->err();
  daemon_ = RunDaemon({"--resync-interval", "3600"});
  ASSERT_TRUE(AwaitListOfNext("a.io/rail1")) << daemon_->err();
  EXPECT_EQ(kubelet_.Present("a.io/rail1").size(), 3U) << "also in the first list of the next process";
  kubelet_.Release("a.io/rail1", {vfs1_[0]});
  EXPECT_TRUE(AwaitDevices("a.io/rail1", 2)) << daemon_->err();
}

// After a reboot VFs may be made while railheadd already runs.
TEST_F(HotplugTest, WhatAllocateWroteComesBackWithItsDevice) {
  const auto seen = kubelet_.Allocate("a.io/rail0", 1);
  ASSERT_TRUE(seen) << Describe(seen.error());
  const std::string file = "/var/run/k8s.cni.cncf.io/devinfo/dp/a.io-rail0-" + seen->ids[0] + "-device.json";
  ASSERT_TRUE(Exists(root_.Path(file)));
  sysfs_.Remove(file);
  daemon_->Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return Exists(root_.Path(file)); })) << daemon_->err();
}

// kubelet asks a resource for its options only when it registers.
TEST_F(HotplugTest, OtherOptionsRegisterAgain) {
  const auto require = [&](const std::string& settings, const std::string& why) {
    const int before = kubelet_.Registrations("a.io/rail0");
    std::string fabric = ThreePools();
    const std::string rail0 = R"("rails": ["rail0"])";
    fabric.replace(fabric.find(rail0), rail0.size(), rail0 + settings);
    sysfs_.Write("/etc/railhead/fabric.json", fabric);
    daemon_->Signal(SIGHUP);
    ASSERT_TRUE(Eventually([&] { return kubelet_.Registrations("a.io/rail0") > before; }))
        << why << daemon_->err();
    // When the former stream ends late, kubelet drops the new plugin, and it registers once more.
    ASSERT_TRUE(Eventually([&] { return !kubelet_.OnlyServer("a.io/rail0").empty(); }))
        << why << daemon_->err();
    ASSERT_TRUE(kubelet_.Devices("a.io/rail0", 4, Soon())) << why;
  };
  require(R"(, "ncclConfig": "off", "deviceNodes": "mount")", "nothing is asked before the start any more");
  EXPECT_TRUE(kubelet_.PreStart("a.io/rail0", {vfs0_[0]}));
  require(R"(, "ncclConfig": "off", "deviceNodes": "cdi")", "the specs are asked for");
  ExpectUntouched("a.io/rail1");
}

// After its restart kubelet gets the current state.
TEST_F(HotplugTest, AKubeletThatRestartsGetsTheNewestList) {
  kubelet_.Stop();
  sysfs_.Unbind(vfs0_[3]);
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(Logs(*daemon_, "advertised devices changed"));
  ASSERT_TRUE(kubelet_.Start());
  ASSERT_TRUE(AwaitDevices("a.io/rail0", 3)) << daemon_->err();
  EXPECT_TRUE(AwaitDevices("a.io/rail1", 4));
}

// kubelet counts a device as free before the DEL of its last pod has ended.
TEST_F(KubeletTest, PrefersDevicesOnTheHost) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon({"--reconcile-interval", "0"});
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  JournalEntry entry;
  entry.key = {"rails", "last-pod", "eth0"};
  entry.boot_id = BootId(root_).value();
  AttachedDevice link;
  link.device = vfs0_[0];
  link.pod_name = "rail0";
  link.before.name = "pf0v0";
  entry.devices.push_back(link);
  ASSERT_TRUE(Journal(root_).Write(entry));
  const auto seen = kubelet.Allocate(kResource, 2);
  ASSERT_TRUE(seen) << Describe(seen.error());
  EXPECT_EQ(seen->ids, (std::vector<std::string>{vfs0_[1], vfs1_[0]}));
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// A PF without carrier, and its VFs. railheadd reports them as unhealthy after a while, and then as healthy
// again.
TEST_F(KubeletTest, TellsHealth) {
  sysfs_.Write(
      "/etc/railhead/fabric.json",
      TwoRailFabric(R"(, "health": {"intervalSeconds": 1, "link": {"downAfter": 1, "upAfter": 1}})"));
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  const auto healthy = [&] {
    const auto devices = kubelet.Present(kResource);
    return std::count_if(devices.begin(), devices.end(), [](const auto& device) { return device.healthy; });
  };
  sysfs_.Write("/sys/class/net/pf0/carrier", "0\n");
  ASSERT_TRUE(Eventually([&] { return healthy() == 4; })) << daemon->err();
  EXPECT_EQ(kubelet.Present(kResource).size(), 8U) << "they are there, and ill";
  EXPECT_TRUE(Logs(*daemon, "unhealthy"));

  // The next process begins with the state of this one.
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  const auto next = RunDaemon();
  ASSERT_TRUE(Eventually([&] {
    return kubelet.Registrations(kResource) >= 2 && !kubelet.OnlyServer(kResource).empty() && healthy() == 4;
  })) << next->err();
  EXPECT_EQ(kubelet.Lists(kResource), 1) << "not healthy first and ill then";
  sysfs_.Write("/sys/class/net/pf0/carrier", "1\n");
  ASSERT_TRUE(Eventually([&] { return healthy() == 8; })) << next->err();
  EXPECT_EQ(next->Stop(), 0) << next->err();
}

// kubelet fails a pod whose device is absent at that moment. So railheadd does not report a reset between two
// pods.
TEST_F(KubeletTest, WhatIsBrieflyResetStaysAsItWas) {
  sysfs_.Write(
      "/etc/railhead/fabric.json",
      TwoRailFabric(R"(, "health": {"intervalSeconds": 1, "link": {"downAfter": 1, "upAfter": 1}})"));
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon({"--reconcile-interval", "0", "--resync-interval", "3600"});
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  JournalEntry entry;
  entry.key = ResetKey(vfs0_[1]);
  entry.boot_id = BootId(root_).value();
  AttachedDevice link;
  link.device = vfs0_[1];
  link.pod_name = link.before.name = "pf0v1";
  entry.devices.push_back(link);
  ASSERT_TRUE(Journal(root_).Write(entry));
  sysfs_.Unbind(vfs0_[1]);
  daemon->Signal(SIGHUP);
  // The link rule needs a second to fire. Discovery has ended then.
  sysfs_.Write("/sys/class/net/pf1/carrier", "0\n");
  const auto healthy = [&] {
    const auto devices = kubelet.Present(kResource);
    return std::count_if(devices.begin(), devices.end(), [](const auto& device) { return device.healthy; });
  };
  ASSERT_TRUE(Eventually([&] { return healthy() == 4; })) << daemon->err();
  EXPECT_EQ(kubelet.Present(kResource).size(), 8U) << daemon->err();

  ASSERT_TRUE(Journal(root_).Remove(entry));
  EXPECT_TRUE(Eventually([&] { return kubelet.Present(kResource).size() == 7; })) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// railheadd does not report a port of the host without a cable.
TEST_F(KubeletTest, WatchesTheHealthOfWhatItGivesOut) {
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "eno2", .numa_node = 1});
  const auto others = sysfs_.AddVfs("0000:c3:00.0", 2);
  sysfs_.Write("/sys/class/net/eno2/carrier", "0\n");
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  const auto watched = [&] {
    std::set<std::string> ids;
    const auto state = health::kHealthFile.Read(root_);
    if (!state || !*state) return ids;
    for (const health::DeviceHealth& device : (*state)->devices) ids.insert(device.id);
    return ids;
  };
  ASSERT_TRUE(Eventually([&] { return !watched().empty(); })) << daemon->err();
  std::set<std::string> expected = {kPf0, kPf1};
  expected.insert(vfs0_.begin(), vfs0_.end());
  expected.insert(vfs1_.begin(), vfs1_.end());
  EXPECT_EQ(watched(), expected);
  EXPECT_EQ(others.size(), 2U);
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// A driver whose attributes take long to read, as while its firmware hangs.
TEST_F(KubeletTest, RemovedDevicesAreReportedBeforeHealthIsRead) {
  sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric(R"(, "health": {"intervalSeconds": 3600})"));
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon({"--resync-interval", "3600"});
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  ASSERT_TRUE(Eventually([&] { return Exists(root_.Path("/run/railhead/health.json")); }));
  auto carrier = std::make_unique<SilentFile>(root_.Path("/sys/class/net/pf0/carrier"));
  sysfs_.Unbind(vfs0_[1]);
  daemon->Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return kubelet.Present(kResource).size() == 7; })) << daemon->err();
  EXPECT_TRUE(Eventually([&] { return daemon->HasOpen(carrier->path()); })) << "nobody has asked";
  EXPECT_EQ(kubelet.Present(kResource).size(), 7U);
  carrier.reset();
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// Attributes that only health reads, only discovery, and both.
class SilentNicTest : public KubeletTest, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(OfAnAttribute, SilentNicTest,
                         ::testing::Values("/sys/class/net/pf0/operstate", "/sys/class/net/pf0/type",
                                           "/sys/bus/pci/devices/0000:43:00.0/sriov_numvfs"));

TEST_P(SilentNicTest, ANicThatDoesNotAnswerCostsNoOther) {
  sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric(R"(, "health": {"intervalSeconds": 1})"));
  const std::string socket = root_.Path("/probes");
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon({"--resync-interval", "3600", "--http-socket", socket});
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  ASSERT_TRUE(Eventually([&] { return Exists(root_.Path("/run/railhead/health.json")); }));
  auto silent = std::make_unique<SilentFile>(root_.Path(GetParam()));
  const auto healthy = [&] {
    std::set<std::string> ids;
    for (const SeenDevice& device : kubelet.Present(kResource)) {
      if (device.healthy) ids.insert(device.id);
    }
    return ids;
  };
  daemon->Signal(SIGHUP);
  std::set<std::string> well(vfs1_.begin(), vfs1_.end());
  EXPECT_TRUE(Eventually([&] { return healthy() == well; })) << daemon->err();
  EXPECT_EQ(kubelet.Present(kResource).size(), 8U) << "its devices stay";
  EXPECT_TRUE(Logs(*daemon, "PF pf0 (0000:43:00.0) does not answer"));
  // All else goes on.
  sysfs_.Unbind(vfs1_[1]);
  well.erase(vfs1_[1]);
  daemon->Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return kubelet.Present(kResource).size() == 7; })) << daemon->err();
  EXPECT_EQ(healthy(), well);
  EXPECT_EQ(Run({"--http-socket", socket, "--ask", "/healthz"})->Wait(), 0);
  EXPECT_EQ(daemon->Stop(), 0) << "nobody waits for it: " << daemon->err();
}

TEST_F(KubeletTest, StartsWithoutANicThatDoesNotAnswer) {
  const SilentFile silent(root_.Path("/sys/bus/pci/devices/0000:43:00.0/sriov_numvfs"));
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(kubelet.Devices(kResource, 4, Soon())) << daemon->err();
  EXPECT_TRUE(Logs(*daemon, "0000:43:00.0 is left out: 0000:43:00.0 does not answer"));
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

// The thread that discovers the node hangs where no deadline is.
TEST_F(KubeletTest, EndsWhileItsNodeWatcherHangs) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  const auto daemon = RunDaemon();
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  const SilentFile silent(root_.Path("/sys/bus/pci/devices/0000:43:00.0/class"));
  daemon->Signal(SIGHUP);
  ASSERT_TRUE(Eventually([&] { return daemon->HasOpen(silent.path()); })) << daemon->err();
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
  EXPECT_NE(daemon->err().find("node_watcher"), std::string::npos) << daemon->err();
}

// In a sandbox without the netlink family.
TEST_F(KubeletTest, LooksOftenInsteadAndSaysSo) {
  DeviceManager kubelet(directory_);
  ASSERT_TRUE(kubelet.Start());
  std::unique_ptr<Process> daemon;
  bool refused = false;
  std::thread([&] {
    refused = RefuseUevents();
    daemon = RunDaemon({"--resync-interval", "3600"});
  }).join();
  ASSERT_TRUE(refused);
  ASSERT_TRUE(kubelet.Devices(kResource, 8, Soon())) << daemon->err();
  const auto logged = [&](const std::string& text) {
    std::size_t times = 0;
    const std::string log = daemon->err();
    for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++times;
    return times;
  };
  EXPECT_TRUE(Eventually([&] { return logged("hardware changes are discovered late") == 1; }))
      << daemon->err();
  // No uevent reports this change.
  sysfs_.Unbind(vfs0_[1]);
  EXPECT_TRUE(Eventually([&] { return kubelet.Present(kResource).size() == 7; })) << daemon->err();
  EXPECT_EQ(logged("hardware changes are discovered late"), 1U) << "once";
  EXPECT_EQ(daemon->Stop(), 0) << daemon->err();
}

}  // namespace
}  // namespace railhead::testing
