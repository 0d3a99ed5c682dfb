// Devices without a network interface: bound to vfio-pci or a similar driver, without a driver, or with their
// interface elsewhere. And a whole PF in a pod.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "tests/support/plugin/plugin_fixture.h"

namespace railhead::testing {
namespace {

class PluginUserspaceTest : public PluginFixture {
 protected:
  void SetUp() override {
    PluginFixture::SetUp();
    BindTo(vfs_[0][0], "vfio-pci");
  }
  // As dpdk-devbind or driverctl leave it; "" for no driver.
  void BindTo(const std::string& bdf, const std::string& driver, const std::string& group = "59") {
    kernel_.state().Unbind(*kernel_.state().Function(bdf));
    kernel_.Sync();
    if (driver.empty()) return;
    sysfs_.Link("/sys/bus/pci/devices/" + bdf + "/driver", "/sys/bus/pci/drivers/" + driver);
    sysfs_.Link("/sys/bus/pci/devices/" + bdf + "/iommu_group", "/sys/kernel/iommu_groups/" + group);
  }
  void Refused(const std::string& fields, int code, const std::string& words) {
    SCOPED_TRACE(fields);
    const auto before = World();
    const auto added = Add({.config = fields});
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), code) << Describe(added.error());
    EXPECT_NE(Describe(added.error()).find(words), std::string::npos) << Describe(added.error());
    EXPECT_EQ(ChangedSince(before), "");
  }
  [[nodiscard]] nlohmann::json Edits(const std::string& bdf) const {
    return nlohmann::json::parse(File("/run/cdi/railhead-" + bdf + ".json"), nullptr,
                                 false)["devices"][0]["containerEdits"];
  }

  const std::string settings_ =
      R"(,"vlan":300,"vlanQoS":2,"mac":"02:aa:00:00:00:01","trust":"on","spoofchk":"off","max_tx_rate":1000)";
};

TEST_F(PluginUserspaceTest, SetUpThroughThePfAndNotMoved) {
  const Call call{.config = Usual() + settings_, .cni_version = "1.1.0"};
  const auto before = World();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(Vf(0).vlan->id, 300);
  EXPECT_EQ(Vf(0).mac->ToString(), "02:aa:00:00:00:01");
  EXPECT_EQ(Vf(0).trust, true);
  EXPECT_EQ(kernel_.state().Find(pod_, "net1"), nullptr) << "nothing is in the pod";
  const auto json = nlohmann::json::parse(*added, nullptr, false);
  EXPECT_EQ(json["interfaces"][0]["name"], "net1");
  EXPECT_EQ(json["interfaces"][0]["mac"], "02:aa:00:00:00:01");
  EXPECT_EQ(json["interfaces"][0]["pciID"], vfs_[0][0]);
  EXPECT_FALSE(json["interfaces"][0].contains("mtu"));
  EXPECT_EQ(json["ips"][0]["address"], "10.100.0.10/24") << "for who drives it";
  EXPECT_TRUE(kernel_.announcements().empty());
  EXPECT_TRUE(kernel_.probes().empty());
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  const auto deleted = Del(call);
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginUserspaceTest, CheckSeesWhatThePfSays) {
  const Call call{.config = Usual() + settings_};
  ASSERT_TRUE(Add(call));
  VfSettings change;
  change.mac = MacAddress::Parse("02:aa:00:00:00:02");
  ASSERT_EQ(kernel_.state().SetVf(*kernel_.state().Function("0000:43:00.0"), 0, change), 0);
  const auto checked = Check(call);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("mac is 02:aa:00:00:00:02"), std::string::npos);
}

TEST_F(PluginUserspaceTest, CdiNamesTheVfioNodes) {
  ASSERT_TRUE(Add({.config = Usual()}));
  const auto nodes = Edits(vfs_[0][0])["deviceNodes"];
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]["path"], "/dev/vfio/vfio");
  EXPECT_EQ(nodes[1]["path"], "/dev/vfio/59");
  EXPECT_FALSE(Edits(vfs_[0][0]).contains("mounts")) << "no GID, no NCCL configuration";
}

// A vendor's VFIO driver for virtual machines that migrate, and a node without an IOMMU.
TEST_F(PluginUserspaceTest, AVendorsVariantOfVfioInAGroupWithoutAnIommu) {
  BindTo(vfs_[0][0], "mlx5_vfio_pci", "0");
  sysfs_.Write("/sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
  const Call call{.config = Usual() + settings_};
  const auto before = World();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(Vf(0).vlan->id, 300);
  const auto nodes = Edits(vfs_[0][0])["deviceNodes"];
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[1]["path"], "/dev/vfio/0");
  EXPECT_EQ(nodes[1]["hostPath"], "/dev/vfio/noiommu-0");
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginUserspaceTest, OtherUserSpaceDrivers) {
  for (const char* driver : {"uio_pci_generic", "igb_uio"}) {
    BindTo(vfs_[0][1], driver);
    const Call call{.config = Usual(1)};
    const auto before = World();
    const auto added = Add(call);
    ASSERT_TRUE(added) << driver << ": " << Describe(added.error());
    EXPECT_FALSE(Edits(vfs_[0][1]).contains("deviceNodes")) << "it has none (yet)";
    ASSERT_TRUE(Del(call));
    EXPECT_EQ(ChangedSince(before), "");
  }
}

TEST_F(PluginUserspaceTest, CdiNamesTheUioNode) {
  BindTo(vfs_[0][0], "uio_pci_generic");
  sysfs_.Write("/sys/bus/pci/devices/" + vfs_[0][0] + "/uio/uio3/name", "uio_pci_generic\n");
  ASSERT_TRUE(Add({.config = Usual()}));
  const auto nodes = Edits(vfs_[0][0])["deviceNodes"];
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0]["path"], "/dev/uio3");
}

// Whatever has it open and however: a VF that a program drives is not given to a pod.
TEST_F(PluginUserspaceTest, ADeviceThatAProgramStillHasOpenIsRefusedWithTheProgram) {
  sysfs_.Write("/proc/4711/comm", "left-over\n");
  sysfs_.Write("/sys/bus/pci/devices/" + vfs_[0][0] + "/vfio-dev/vfio7/dev", "235:7\n");
  const std::string fd = "/proc/4711/fd/7";
  for (const char* node : {"/dev/vfio/59", "/dev/vfio/noiommu-59", "/dev/vfio/devices/vfio7"}) {
    sysfs_.Link(fd, "/dev/null");
    const auto free = Add({.config = Usual()});
    ASSERT_TRUE(free) << Describe(free.error());
    ASSERT_TRUE(Del({.config = Usual()}));
    // An absolute target: FakeSysfs makes relative ones.
    std::filesystem::remove(sysfs_.directory() + fd);
    std::filesystem::create_symlink(node, sysfs_.directory() + fd);
    Refused(Usual(), kCniTryAgainLater,
            "device " + vfs_[0][0] + " is used by process 4711 (left-over) through " + node);
    sysfs_.Remove(fd);
  }
  BindTo(vfs_[0][1], "uio_pci_generic");
  sysfs_.Write("/sys/bus/pci/devices/" + vfs_[0][1] + "/uio/uio3/name", "uio_pci_generic\n");
  std::filesystem::create_symlink("/dev/uio3", sysfs_.directory() + fd);
  Refused(Usual(1), kCniTryAgainLater, "process 4711 (left-over) through /dev/uio3");
}

// The rail's VLAN holds for every VF of the rail, however it is driven.
TEST_F(PluginUserspaceTest, TheRailsVlan) {
  ASSERT_TRUE(Add({.config = Usual()}));
  EXPECT_EQ(Vf(0).vlan->id, 100);
  EXPECT_EQ(Vf(0).vlan->qos, 3);
}

TEST_F(PluginUserspaceTest, BesideNicsOfTheSamePod) {
  const Call call{.config = R"("devices":[")" + vfs_[0][0] + R"(",")" + vfs_[1][0] +
                            R"("],"mtu":4200,"ipam":{"type":"test-ipam","addresses":{
                            "rail0":"10.100.0.10/24","rail1":"10.200.0.10/24"}})"};
  const auto before = World();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(kernel_.state().Find(pod_, "rail0"), nullptr);
  EXPECT_EQ(PodLink("rail1").mtu, 4200);
  EXPECT_EQ(File("/run/railhead/nccl/c1/nccl.conf").substr(0, 24), "NCCL_IB_HCA==mlx5_pf1v0\n");
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginUserspaceTest, AfterTheNamespaceVanished) {
  ASSERT_TRUE(Add({.config = Usual() + settings_}));
  kernel_.RemoveNamespace(pod_);
  ASSERT_TRUE(Del({.config = Usual() + settings_}));
  EXPECT_EQ(Vf(0).vlan->id, 0);
  EXPECT_TRUE(Vf(0).mac->IsZero());
  EXPECT_EQ(Files(), "");
}

TEST_F(PluginUserspaceTest, RequiredNcclConfigIsRefused) {
  Refused(Usual() + R"(,"ncclConfig":"required")", kCniUnsupported, "has no RDMA device");
  Allocate({vfs_[0][0]});
  Refused(Usual(), kCniUnsupported, "has no RDMA device");
}

TEST_F(PluginUserspaceTest, PfBoundToVfioIsRefused) {
  (void)kernel_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2"});
  BindTo("0000:c3:00.0", "vfio-pci");
  Refused(R"("deviceID":"0000:c3:00.0",)" + Ipam(), kCniUnsupported, "is a PF bound to vfio-pci");
}

TEST_F(PluginUserspaceTest, DeviceWithoutDriver) {
  BindTo(vfs_[0][1], "");
  Refused(Usual(1), kCniNotFound, "no driver is bound to it");
}

TEST_F(PluginUserspaceTest, DeviceWithDriverButWithoutInterface) {
  BindTo(vfs_[0][1], "mlx5_core");
  Refused(Usual(1), kCniTryAgainLater, "has no network interface in the host's namespace");
}

TEST_F(PluginUserspaceTest, PfThatIsInAPodItself) {
  const std::string elsewhere = MakePod("elsewhere");
  ASSERT_EQ(kernel_.state().Move(*kernel_.state().Find(kHost, "pf0"), elsewhere, "pf0", {}), 0);
  kernel_.Sync();
  Refused(Usual(), kCniNotFound, "the PF 0000:43:00.0 of VF " + vfs_[0][0]);
}

// sriov-cni #8: a whole PF. It is restored as it was, up and with its names.
TEST_F(PluginUserspaceTest, WholePfIsRestoredWithItsSettings) {
  (void)kernel_.AddPf({.address = "0000:c3:00.0", .netdev = "pf2", .rdma = "mlx5_2", .mtu = 9000});
  FakeNetdev& pf = *kernel_.state().Find(kHost, "pf2");
  pf.link.alias = "rail 2, port 17";
  pf.link.tx_queue_len = 4000;
  pf.link.all_multicast = true;
  ASSERT_EQ(kernel_.state().AddAltName(pf, "enp195s0np0"), 0);
  const std::string device = R"("deviceID":"0000:c3:00.0",)" + Ipam();
  for (const char* more : {"", R"(,"mac":"02:aa:00:00:00:01","mtu":4200,"txQLen":10,"promisc":true,
      "allmulti":false,"alias":"the pod's","altNames":["roce0"])",
                           R"(,"vlan":0)"}) {
    const Call call{.config = device + more};
    const auto before = World();
    const auto added = Add(call);
    ASSERT_TRUE(added) << more << ": " << Describe(added.error());
    EXPECT_EQ(PodLink().parent_device, "0000:c3:00.0");
    EXPECT_NE(File("/run/railhead/nccl/c1/nccl.conf").find("mlx5_2\n"), std::string::npos);
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << Describe(checked.error());
    ASSERT_TRUE(Del(call));
    EXPECT_EQ(ChangedSince(before), "") << more;
  }
  Refused(device + R"(,"vlan":100)", kCniInvalidConfig, "is a PF");
  Refused(device + R"(,"max_tx_rate":100)", kCniInvalidConfig, "is a PF");
}

}  // namespace
}  // namespace railhead::testing
