// DEL in all the situations in which a runtime calls it.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginDelTest : public PluginFixture {};

TEST_F(PluginDelTest, OfTheUnknownOnlyAsksIpam) {
  const auto before = World();
  EXPECT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(IpamCalls(), "DEL");
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(kernel_.calls(), 0) << kernel_.Log();
}

TEST_F(PluginDelTest, WithoutAnythingInstalledSucceeds) {
  EXPECT_TRUE(Del({.config = Device()})) << "no IPAM given, railhead-ipam not there";
  EXPECT_TRUE(Del({})) << "not even a device";
}

// A killed ADD's IPAM plugin keeps running, and holds the device's lock. If DEL did not wait, an address that
// the plugin still allocates would be held for ever.
TEST_F(PluginDelTest, WaitsForTheIpamPluginOfAKilledAdd) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const Journal journal(sysfs_.root());
  auto entry = **journal.Find({"rail0", "c1", "net1"});
  entry.phase = Phase::kPlanned;
  ASSERT_TRUE(journal.Write(entry));
  (void)IpamCalls();
  auto lock = std::make_unique<FileLock>(
      *FileLock::Acquire(paths::Lock(sysfs_.root(), vfs_[0][0]), std::chrono::seconds(10)));
  std::atomic<bool> done = false;
  bool deleted = false;
  std::thread runtime([&] {
    deleted = Del({.config = Usual()}).has_value();
    done = true;
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (!done && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_FALSE(done) << "DEL did not wait for the lock";
  EXPECT_EQ(IpamCalls(), "");
  lock.reset();
  runtime.join();
  EXPECT_TRUE(deleted);
  EXPECT_EQ(IpamCalls(), "DEL");
}

// The next ADD of a device whose pod died without a DEL also releases that pod's address.
TEST_F(PluginDelTest, NextAddReleasesTheAddressOfThePodThatDied) {
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.RemoveNamespace(pod_);
  const std::string other = MakePod("pod2");
  (void)IpamCalls();
  const auto added = Add({.container = "c2", .netns = other, .config = Usual()});
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(IpamCalls(), "DEL ADD");
}

// An entry that no lock file names touched nothing. The device may belong to another pod now.
TEST_F(PluginDelTest, EntryThatHoldsNoDeviceTouchesNone) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const Journal journal(sysfs_.root());
  JournalEntry dead = **journal.FindByDevice(vfs_[0][0]);
  dead.key = {"rail0", "dead", "net1"};
  dead.phase = Phase::kPlanned;
  const std::string directory = sysfs_.directory() + "/run/railhead/attachments/dead";
  std::filesystem::create_directories(directory);
  ASSERT_TRUE(WriteAtomic(directory + "/rail0@net1.json", FormatJournalEntry(dead).value(), Sync::kVolatile));
  const auto deleted = Del({.container = "dead", .config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  const auto checked = Check({.config = Usual()});
  EXPECT_TRUE(checked) << Describe(checked.error());
}

TEST_F(PluginDelTest, Twice) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_TRUE(Del({.config = Usual()}));
  EXPECT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(ChangedSince(before), "");
}

const std::vector<std::string>& NamesOfNoInterface() {
  static const std::vector<std::string> kAll = {"all",   "default", ".",        "..",
                                                "a/b",   "../net1", "a:b",      "a b",
                                                "a\nb",  "net%d",   "\xff\xfe", std::string(4096, 'a'),
                                                "net1/", "/net1"};
  return kAll;
}

// ADD refuses the name, so DEL has nothing to do: it must neither fail nor take another attachment for it.
TEST_F(PluginDelTest, OfANameThatAddRefusesTouchesNothing) {
  ASSERT_TRUE(Add({.config = Usual()}));
  (void)IpamCalls();
  const auto attached = World();
  for (const std::string& ifname : NamesOfNoInterface()) {
    const auto deleted = Del({.ifname = ifname, .config = Usual()});
    EXPECT_TRUE(deleted) << ifname.substr(0, 20) << ": " << Describe(deleted.error());
  }
  EXPECT_EQ(IpamCalls(), "");
  EXPECT_EQ(ChangedSince(attached), "");
  EXPECT_TRUE(Check({.config = Usual()}));
}

// An earlier version took the name. With each CNI_NETNS, also while the pod lives.
TEST_F(PluginDelTest, FindsTheEntryOfAnEarlierVersionsName) {
  const auto before = World();
  for (const std::string ifname : {"net\x01", "net\x7f"}) {
    for (const std::string& netns : {pod_, std::string(), std::string("no/path"), std::string("/gone")}) {
      SCOPED_TRACE(std::string(ifname).append(" ").append(netns));
      CniRequest request = Request({.config = Usual()});
      request.ifname = ifname;
      const auto added = plugin_.Add(request);
      ASSERT_TRUE(added) << Describe(added.error());
      ASSERT_NE(ChangedSince(before), "");
      request = Request({.command = "DEL", .ifname = ifname, .config = Usual()});
      request.netns = netns;
      const auto deleted = plugin_.Del(request);
      ASSERT_TRUE(deleted) << Describe(deleted.error());
      EXPECT_EQ(ChangedSince(before), "");
    }
  }
}

TEST_F(PluginDelTest, OfAnotherAttachmentTouchesNothing) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const auto attached = World();
  for (const Call& call :
       {Call{.network = "other", .config = Usual()}, Call{.container = "c2", .config = Usual()},
        Call{.ifname = "net2", .config = Usual()}}) {
    EXPECT_TRUE(Del(call));
    EXPECT_EQ(ChangedSince(attached), "");
  }
  EXPECT_TRUE(Check({.config = Usual()}));
}

// The pod hides the VF in a third namespace. An interface with the VF's name and MAC, in any namespace, is
// not the VF.
TEST_F(PluginDelTest, AnInterfaceWithItsNameAndMacIsNotTakenForTheVf) {
  const Call call{.config = Usual()};
  const auto before = World();
  for (const std::string& where : {pod_, std::string(kHost)}) {
    for (const char* name : {"net1", "pf0v0"}) {
      SCOPED_TRACE(where + " " + name);
      ASSERT_TRUE(Add(call));
      const MacAddress mac = PodLink().mac;
      const std::string hidden = kernel_.AddNamespace("hidden");
      ASSERT_EQ(kernel_.state().Move(*kernel_.state().Find(pod_, "net1"), hidden, "kept", {}), 0);
      kernel_.AddVeth(where, name, hidden, "peer");
      kernel_.state().Find(where, name)->link.mac = mac;
      kernel_.Sync();
      const auto ended = Gc({}, call);
      ASSERT_FALSE(ended) << "the pod has the VF still";
      EXPECT_EQ(ended.error().code, ErrorCode::kBusy) << Describe(ended.error());
      EXPECT_NE(kernel_.state().Find(where, name), nullptr) << "that is somebody else's";
      EXPECT_FALSE(Add({.container = "c2", .netns = MakePod("other"), .config = Usual()}));
      kernel_.RemoveNamespace(sysfs_.directory() + "/other.netns");
      kernel_.RemoveNamespace(hidden);
      const auto deleted = Del(call);
      ASSERT_TRUE(deleted) << Describe(deleted.error());
      ASSERT_EQ(ChangedSince(before), "");
    }
  }
}

// When the kernel moves a device, it keeps the device's VLANs in the pod.
TEST_F(PluginDelTest, WhatThePodHasPutOnItsNicGoesFirst) {
  kernel_.AddVlan(kHost, "ours.9", "pf1v3");
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.AddVlan(pod_, "net1.7", "net1");
  kernel_.AddVlan(pod_, "q-in-q", "net1.7");
  kernel_.AddVlan(pod_, "eth0.7", "eth0");
  const auto deleted = Del({.config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(kernel_.state().Find(pod_, "net1.7"), nullptr);
  EXPECT_EQ(kernel_.state().Find(pod_, "q-in-q"), nullptr);
  FakeNetdev* of_the_pod = kernel_.state().Find(pod_, "eth0.7");
  ASSERT_NE(of_the_pod, nullptr) << "on another interface";
  kernel_.state().RemoveNetdev(of_the_pod->id);
  EXPECT_EQ(ChangedSince(before), "");
}

// A macvlan can do so: the kernel makes others from it on the same device.
TEST_F(PluginDelTest, WhatThePodGoesOnPuttingOnItsNicGoesToo) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.AddVlan(pod_, "mv0", "net1");
  const int lower = kernel_.state().Find(pod_, "mv0")->lower;
  int more = 3;
  kernel_.before = [&](const std::string& call) {
    if (!call.starts_with("DeleteLink") || more == 0) return;
    FakeNetdev& made = kernel_.state().AddNetdev(pod_, "mv" + std::to_string(more--));
    made.link.kind = "macvlan";
    made.lower = lower;
  };
  const auto deleted = Del({.config = Usual()});
  kernel_.before = nullptr;
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(more, 0);
  EXPECT_EQ(ChangedSince(before), "");
}

// It has not gone, so the entry stays.
TEST_F(PluginDelTest, WhatThePodHasPutOnItsNicAndStays) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.AddVlan(pod_, "net1.7", "net1");
  kernel_.FailEvery("DeleteLink", EPERM);
  const auto deleted = Del({.config = Usual()});
  ASSERT_FALSE(deleted);
  EXPECT_NE(deleted.error().message.find("removing net1.7, which the pod created on " + vfs_[0][0]),
            std::string::npos)
      << deleted.error().message;
  kernel_.StopFailing();
  EXPECT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginDelTest, AfterTheNamespaceVanished) {
  ASSERT_TRUE(Add({.config = Usual() + R"(,"mac":"02:aa:00:00:00:01","mtu":4200)"}));
  const std::string pod = pod_;
  kernel_.RemoveNamespace(pod_);
  EXPECT_NE(kernel_.state().Find(kHost, "net1"), nullptr);
  const auto deleted = Del({.netns = pod, .config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  const FakeNetdev* netdev = kernel_.state().Find(kHost, "pf0v0");
  ASSERT_NE(netdev, nullptr);
  EXPECT_EQ(netdev->link.mtu, 1500);
  EXPECT_EQ(Vf(0).vlan->id, 0);
  EXPECT_TRUE(Vf(0).mac->IsZero());
  EXPECT_EQ(Files(), "");
}

TEST_F(PluginDelTest, AfterTheNamespaceVanishedWithTheNameTaken) {
  const auto mac = kernel_.state().OfFunction(vfs_[0][0])->link.mac;
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.AddVeth(kHost, "net1", kHost, "peer");
  kernel_.RemoveNamespace(pod_);
  const auto deleted = Del({.netns = "/gone", .config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(kernel_.state().Find(kHost, "pf0v0")->link.mac, mac);
  EXPECT_EQ(kernel_.state().Find(kHost, "net1")->link.kind, "veth") << "not ours, not touched";
}

TEST_F(PluginDelTest, WithoutNamespaceFindsItInTheJournal) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  CniRequest request = Request({.command = "DEL", .config = Usual()});
  request.netns.clear();
  EXPECT_TRUE(plugin_.Del(request));
  EXPECT_EQ(ChangedSince(before), "");
}

// The path is the same, but the namespace is another: the pod's own is gone, and nothing there is ours.
TEST_F(PluginDelTest, NamespaceOfTheSamePathIsNotThePods) {
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.RemoveNamespace(pod_);
  pod_ = kernel_.AddNamespace("pod1");
  kernel_.AddVeth(pod_, "net1", kHost, "veth-new");
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(PodLink("net1").kind, "veth");
  EXPECT_NE(kernel_.state().Find(kHost, "pf0v0"), nullptr);
  EXPECT_EQ(Files(), "");
}

TEST_F(PluginDelTest, AfterTheDeviceVanished) {
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.state().Unbind(*kernel_.state().Function(vfs_[0][0]));
  kernel_.Sync();
  sysfs_.Remove("/sys/bus/pci/devices/" + vfs_[0][0]);
  const auto deleted = Del({.config = Usual()});
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(Files(), "");
}

// A NIC that falls off the bus takes its VFs along, and their VLANs.
TEST_F(PluginDelTest, AfterThePfVanishedToo) {
  ASSERT_TRUE(Add({.config = Usual()}));
  ASSERT_EQ(Vf(0).vlan->id, 100) << "or there would be nothing to restore";
  for (const std::string& bdf : {vfs_[0][0], std::string("0000:43:00.0")}) {
    kernel_.state().Unbind(*kernel_.state().Function(bdf));
    kernel_.Sync();
    sysfs_.Remove("/sys/bus/pci/devices/" + bdf);
  }
  const auto deleted = Del({.config = Usual()});
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(Files(), "");
  EXPECT_EQ(HeldAddresses(), "");
}

// The driver's module may be gone, or a user-space driver has the device: DEL has nothing to wait for.
TEST_F(PluginDelTest, AfterTheDriverWasTakenAway) {
  for (const std::string driver : {"", "vfio-pci"}) {
    SCOPED_TRACE(driver);
    ASSERT_TRUE(Add({.config = Usual()}));
    FakeFunction& function = *kernel_.state().Function(vfs_[0][0]);
    const FakeDriver before = function.driver;
    kernel_.state().Unbind(function);
    if (!driver.empty()) {
      const std::string link = "/sys/bus/pci/devices/" + vfs_[0][0] + "/driver";
      sysfs_.Write("/sys/bus/pci/drivers/vfio-pci/bind", "");
      kernel_.Sync();
      sysfs_.Link(link, "/sys/bus/pci/drivers/vfio-pci");
    } else {
      kernel_.Sync();
    }
    kernel_.FailEvery("BindDriver", ENOENT);
    const auto deleted = Del({.config = Usual()});
    EXPECT_TRUE(deleted) << Describe(deleted.error());
    EXPECT_EQ(Files(), "");
    EXPECT_EQ(Vf(0).vlan->id, 0) << "the PF's side is restored all the same";
    kernel_.StopFailing();
    function.driver = before;
    kernel_.state().Bind(function);
    kernel_.Sync();
  }
}

// The next pod must not meet what a pod with NET_ADMIN did to the device.
TEST_F(PluginDelTest, AfterThePodSetWhateverItCould) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  FakeNetdev& netdev = *kernel_.state().Find(pod_, "net1");
  LinkChange change;
  change.mac = *MacAddress::Parse("02:bb:00:00:00:07");
  change.alias = "mine";
  change.tx_queue_len = 7;
  change.promiscuous = true;
  change.all_multicast = true;
  ASSERT_EQ(kernel_.state().Change(netdev, change), 0);
  ASSERT_EQ(kernel_.state().AddAltName(netdev, "podname"), 0);
  const auto deleted = Del({.config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

// The pod has renamed the device, taken it down and given it other addresses. DEL still finds it.
TEST_F(PluginDelTest, AfterThePodChangedTheLink) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  kernel_.SetUp(pod_, "net1", false);
  (void)kernel_.state().Change(*kernel_.state().Find(pod_, "net1"), {{.mtu = 1300}, "renamed"});
  kernel_.AddAddress(pod_, "renamed", "10.100.0.77/24");
  const auto deleted = Del({.config = Usual()});
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginDelTest, IpamFailureKeepsTheEntryForTheNextTry) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  FailIpam("DEL");
  EXPECT_FALSE(Del({.config = Usual()}));
  FailIpam("");
  EXPECT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(IpamCalls(), "ADD DEL DEL");
}

// The network's author chooses the IPAM plugin and its settings. The next pod still gets the device. Each
// later DEL tries to release the first pod's addresses.
TEST_F(PluginDelTest, AnIpamPluginThatFailsHoldsNoDevice) {
  const auto before = World();
  const Journal journal(sysfs_.root());
  const AttachmentKey first{"rail0", "c1", "net1"};
  ASSERT_TRUE(Add({.config = Usual()}));
  FailIpam("DEL");
  for (int tried = 0; tried < 3; ++tried) {
    const auto failed = Del({.config = Usual()});
    ASSERT_FALSE(failed);
    EXPECT_NE(Describe(failed.error()).find("releasing the addresses of"), std::string::npos);
    const auto debt = journal.Find(first).value();
    ASSERT_TRUE(debt);
    EXPECT_TRUE(debt->devices.empty());
    EXPECT_TRUE(journal.HeldDevices().empty());
  }
  const Call next{.container = "c2", .netns = MakePod("pod2"), .config = Usual()};
  const auto added = Add(next);
  EXPECT_TRUE(added) << Describe(added.error());
  EXPECT_FALSE(Add({.config = Usual(1)})) << "of the first one, while its debt cannot be settled";
  FailIpam("");
  EXPECT_TRUE(Del({.config = Usual()}));
  EXPECT_FALSE(journal.Find(first).value());
  EXPECT_EQ(journal.HeldDevices().size(), 1U) << "the next pod keeps what it has";
  EXPECT_TRUE(Del(next));
  kernel_.RemoveNamespace(next.netns);
  EXPECT_EQ(ChangedSince(before), "");
}

// DELs also come for pods without a device, and for pods whose ADD the IPAM plugin refused. A plugin that is
// missing, broken or incompatible must not hold these up.
TEST_F(PluginDelTest, OfTheUnknownIsNotHeldUpByThePlugin) {
  for (const std::string fields :
       {R"("ipam":{"type":"missing"})", R"("ipam":{"type":"test-ipam","refuse-DEL":7})",
        R"("ipam":{"type":"test-ipam","refuse-DEL":2})"}) {
    const auto deleted = Del({.config = Device() + "," + fields});
    EXPECT_TRUE(deleted) << fields << ": " << Describe(deleted.error());
  }
  const auto failed = Del({.config = Device() + R"(,"ipam":{"type":"test-ipam","refuse-DEL":11})"});
  EXPECT_FALSE(failed) << "an address of the boot before may still be held";
}

// A finished ADD has its address. If the plugin is away for a moment, DEL asks again.
TEST_F(PluginDelTest, OfAFinishedAddWaitsForTheIpamPlugin) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  std::filesystem::rename(Programs() + "/test-ipam", Programs() + "/upgraded");
  const auto deleted = Del({.config = Usual()});
  ASSERT_FALSE(deleted);
  EXPECT_NE(Describe(deleted.error()).find("install it"), std::string::npos) << Describe(deleted.error());
  EXPECT_NE(kernel_.state().Find(kHost, "pf0v0"), nullptr) << "the device is on the host meanwhile";
  std::filesystem::rename(Programs() + "/upgraded", Programs() + "/test-ipam");
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(ChangedSince(before), "");
}

// The effect of a crashed plugin is unknown: DEL asks for its address until the plugin is back.
TEST_F(PluginDelTest, OfACrashedIpamPluginReleases) {
  const Call call{.config = Device() + R"(,"ipam":{"type":"test-ipam","refuse-ADD":"crash"})"};
  FailIpam("DEL");
  ASSERT_FALSE(Add(call));
  EXPECT_EQ(HeldAddresses(), "c1@net1") << "it crashed with the address taken";
  EXPECT_FALSE(Del(call)) << "nothing says that it holds nothing";
  FailIpam("");
  const auto deleted = Del(call);
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(HeldAddresses(), "");
}

// A configuration that ADD refused comes back with DEL. If DEL refused it again, the runtime could not remove
// the sandbox.
TEST_F(PluginDelTest, WithTheConfigurationThatAddRefused) {
  for (const char* fields : {R"("vlan":4095)", R"("vlna":1)", R"("deviceID":7)", R"("ipam":{"x":1})"}) {
    const Call call{.config = fields};
    EXPECT_FALSE(Add(call));
    const auto deleted = Del(call);
    EXPECT_TRUE(deleted) << fields << ": " << Describe(deleted.error());
  }
}

TEST_F(PluginDelTest, WithAConfigurationThatWasBrokenMeanwhile) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(IpamCalls(), "ADD");
  const auto deleted = Del({.config = R"("vlan":4095)"});
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_EQ(IpamCalls(), "DEL") << "the one that gave the address, as the journal says";
}

TEST_F(PluginDelTest, WithBrokenFabric) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", "{");
  const auto deleted = Del({.config = Usual()});
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginDelTest, DamagedEntryIsReported) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const std::string path = "/run/railhead/attachments/c1/rail0@net1.json";
  ASSERT_NE(File(path), "");
  WriteFileAt(sysfs_.directory() + path, "{");
  const auto deleted = Del({.config = Usual()});
  ASSERT_FALSE(deleted) << "the device would be lost";
  EXPECT_NE(deleted.error().message.find("rail0@net1.json"), std::string::npos);
  EXPECT_NE(deleted.error().hint.find("railctl journal restore"), std::string::npos) << deleted.error().hint;
}

// One unreadable entry of a sandbox does not affect its other attachments.
TEST_F(PluginDelTest, DamagedSiblingKeepsNoOtherAttachment) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const auto before = World();
  const Call second{.network = "rail1", .ifname = "net2", .config = Usual(0, 1)};
  ASSERT_TRUE(Add(second));
  const std::string path = "/run/railhead/attachments/c1/rail0@net1.json";
  const std::string text = File(path);
  WriteFileAt(sysfs_.directory() + path, text.substr(0, text.size() / 2));
  const auto deleted = Del(second);
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  WriteFileAt(sysfs_.directory() + path, text);
  EXPECT_EQ(Vf(0, 1).vlan->id, 0);
  EXPECT_NE(Files().find("rail0@net1.json"), std::string::npos);
  EXPECT_NE(Files().find("/run/railhead/nccl/c1/"), std::string::npos) << "the first one still needs it";
}

TEST_F(PluginDelTest, RemovesWhatAKilledAddHadHalfWritten) {
  const auto before = World();
  WriteFileAt(sysfs_.directory() + "/run/railhead/attachments/c1/rail0@net1.json.new", "{");
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_FALSE(Exists(sysfs_.directory() + "/run/railhead/attachments/c1"));
  (void)IpamCalls();
  EXPECT_EQ(ChangedSince(before), "") << "killed before its entry was there";
  Allocate({vfs_[0][0]});
  const auto allocated = World();
  ASSERT_TRUE(Add({.config = Usual()}));
  for (const char* path : {"/run/railhead/attachments/c1/rail0@net1.json", "/run/railhead/nccl/c1/nccl.conf"})
    WriteFileAt(sysfs_.directory() + std::string(path) + ".new", "{");
  WriteFileAt(sysfs_.directory() + "/run/cdi/railhead-" + vfs_[0][0] + ".json.new", "{");
  ASSERT_TRUE(Del({.config = Usual()}));
  EXPECT_EQ(ChangedSince(allocated), "");
}

TEST_F(PluginDelTest, TheSandboxsLastAttachmentTakesTheNcclConfig) {
  const auto before = World();
  ASSERT_TRUE(Add({.config = Usual(0, 0)}));
  ASSERT_TRUE(Add({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)}));
  ASSERT_TRUE(Del({.config = Usual(0, 0)}));
  EXPECT_NE(File("/run/railhead/nccl/c1/nccl.conf"), "");
  ASSERT_TRUE(Del({.network = "rail1", .ifname = "net2", .config = Usual(0, 1)}));
  EXPECT_EQ(ChangedSince(before), "");
}

}  // namespace
}  // namespace railhead::testing
