#include "deviceplugin/node/resources/allocate.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "cni/nccl/nccl_config_files.h"
#include "cni/state/allocation.h"
#include "deviceplugin/node/resources/cdi_grant.h"
#include "deviceplugin/node/resources/device_info.h"
#include "deviceplugin/node/resources/find_allocated.h"
#include "deviceplugin/node/resources/find_lost.h"
#include "deviceplugin/node/resources/grant.h"
#include "deviceplugin/node/resources/restore_allocated.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/unit/deviceplugin/node/resources/other_devices.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

class AllocateTest : public TwoRails {
 protected:
  resources::Allocator allocator_{root_};

  std::shared_ptr<const resources::ResourcePool> SriovdpPool(const std::string& resource) const {
    const auto specs =
        resources::ParseSriovdpConfig(R"({"resourceList": [)" + resource + "]}", "config.json", "intel.com");
    if (!specs) ADD_FAILURE() << Describe(specs.error());
    return BuildPools(specs.value(), *Discover()).front();
  }
};

TEST_F(AllocateTest, AnswersSortedCdiNamesAndVariables) {
  const auto answer = allocator_.Allocate(*Pool(), {vfs1_[0], vfs0_[2]});
  ASSERT_TRUE(answer) << Describe(answer.error());
  EXPECT_EQ(answer->cdi_devices,
            (std::vector<std::string>{"railhead.io/nic=" + vfs0_[2], "railhead.io/nic=" + vfs1_[0]}));
  EXPECT_EQ(answer->envs.at("PCIDEVICE_RAILHEAD_IO_ROCE"), vfs0_[2] + "," + vfs1_[0]);
  const Json info = Json::parse(answer->envs.at("PCIDEVICE_RAILHEAD_IO_ROCE_INFO"));
  EXPECT_EQ(info[vfs0_[2]]["generic"]["deviceID"], vfs0_[2]);
  EXPECT_FALSE(info[vfs0_[2]].contains("rdma")) << "not known before the device is in the pod";
  EXPECT_EQ(answer->envs.size(), 2U) << "no NCCL variable: they would beat nccl.conf";
  EXPECT_TRUE(answer->mounts.empty());
  EXPECT_TRUE(answer->device_nodes.empty());
}

TEST_F(AllocateTest, WritesOneRecordPerDeviceWithARisingGeneration) {
  ASSERT_TRUE(allocator_.Allocate(*Pool(), {vfs1_[0], vfs0_[0]}));
  const auto first = ReadAllocation(root_, vfs1_[0]);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->resource, "railhead.io/roce");
  EXPECT_EQ((*first)->device_id, vfs1_[0]);
  EXPECT_EQ((*first)->siblings, (std::vector<std::string>{vfs0_[0], vfs1_[0]}));
  EXPECT_EQ((*first)->generation, 1U);
  EXPECT_EQ((*first)->nccl_config, NcclConfigPolicy::kRequired);
  EXPECT_EQ((*first)->device_nodes, DeviceNodeMode::kCdi);

  // An app container takes over an init container's device and adds one: all of the
  // new request are of one generation, above any before.
  ASSERT_TRUE(allocator_.Allocate(*Pool(), {vfs1_[0]}));
  ASSERT_TRUE(allocator_.Allocate(*Pool(), {vfs1_[0], vfs1_[1]}));
  for (const std::string& id : {vfs1_[0], vfs1_[1]}) {
    const auto record = ReadAllocation(root_, id);
    ASSERT_TRUE(record && *record);
    EXPECT_EQ((*record)->generation, 3U);
    EXPECT_EQ((*record)->siblings, (std::vector<std::string>{vfs1_[0], vfs1_[1]}));
  }
}

TEST_F(AllocateTest, ReplacesADamagedRecord) {
  sysfs_.Write("/var/lib/railhead/allocations/" + vfs0_[0] + ".json", "{\"generation\":");
  ASSERT_TRUE(allocator_.Allocate(*Pool(), {vfs0_[0]}));
  const auto record = ReadAllocation(root_, vfs0_[0]);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->siblings, std::vector<std::string>{vfs0_[0]});
}

TEST_F(AllocateTest, DoesNotAnswerWhenTheRecordCannotBeWritten) {
  sysfs_.Write("/var/lib/railhead", "a file where the directory should be");
  const auto answer = allocator_.Allocate(*Pool(), {vfs0_[0]});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find(vfs0_[0]), std::string::npos) << answer.error().message;
}

TEST_F(AllocateTest, RefusesWhatIsNoDeviceOfThePool) {
  for (const std::vector<std::string>& ids : {std::vector<std::string>{},
                                              {"0000:99:00.0"},
                                              {vfs0_[0], "../../etc/passwd"},
                                              {kPf0},
                                              {vfs0_[0], vfs0_[0]}}) {
    const auto answer = allocator_.Allocate(*Pool(), ids);
    ASSERT_FALSE(answer) << Join(ids, ",");
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
  }
  EXPECT_FALSE(Exists(root_.Path("/var/lib/railhead/allocations/" + vfs0_[0] + ".json")))
      << "nothing was written";
}

// Also a slot whose device is gone: none of a pool's devices has its name any more.
TEST_F(AllocateTest, KnowsWhatPodsHaveLost) {
  const std::string slot = "slot-78ad8de3-n0-003";
  const auto entry = [](const std::string& pod, const std::string& resource, const std::string& id) {
    return Json{
        {"PodUID", pod}, {"ContainerName", "c"}, {"ResourceName", resource}, {"DeviceIDs", {{"0", {id}}}}};
  };
  const Json entries = {
      entry("uid-1", "railhead.io/roce", vfs0_[0]),  entry("uid-1", "railhead.io/roce", "0000:99:00.1"),
      entry("uid-2", "railhead.io/roce", slot),      entry("uid-ended", "railhead.io/roce", "0000:99:00.2"),
      entry("uid-1", "railhead.io/other", vfs0_[1]), entry("uid-1", "nvidia.com/gpu", "GPU-1")};
  sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
               Json{{"Data", {{"PodDeviceEntries", entries}}}}.dump());
  sysfs_.Write("/var/lib/kubelet/pods/uid-1/x", "");
  sysfs_.Write("/var/lib/kubelet/pods/uid-2/x", "");
  using Lost = std::map<std::string, std::set<std::string>>;
  EXPECT_EQ(resources::FindAllocatedAndLost(root_, {Pool()}),
            (Lost{{"railhead.io/roce", {"0000:99:00.1", slot}}}));
  EXPECT_EQ(resources::FindAllocatedAndLost(root_, {}), Lost{}) << "the resource was withdrawn";
}

TEST_F(AllocateTest, WritesDeviceInfoForMultus) {
  ASSERT_TRUE(allocator_.Allocate(*Pool(), {vfs0_[1]}));
  ASSERT_TRUE(allocator_.Allocate(*Pool(), {vfs0_[1]})) << "the file is there already, and read-only";
  const std::string path =
      root_.Path("/var/run/k8s.cni.cncf.io/devinfo/dp/railhead.io-roce-" + vfs0_[1] + "-device.json");
  EXPECT_EQ(resources::DeviceInfoPath(root_, "railhead.io/roce", vfs0_[1]), path);
  const auto text = ReadFile(path);
  ASSERT_TRUE(text && *text);
  const Json json = Json::parse(**text);
  EXPECT_EQ(json["type"], "pci");
  EXPECT_EQ(json["version"], "1.1.0");
  EXPECT_EQ(json["pci"]["pci-address"], vfs0_[1]);
  EXPECT_EQ(json["pci"]["pf-pci-address"], kPf0);
  EXPECT_EQ(json["pci"]["rdma-device"], "pf0_rdma1");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0444U);
}

TEST_F(AllocateTest, MountGivesNodesAndTheFirstDevicesFile) {
  sysfs_.Write("/dev/infiniband/rdma_cm", "");
  const auto answer = allocator_.Allocate(*Pool(R"(, "deviceNodes": "mount")"), {vfs1_[0], vfs0_[0]});
  ASSERT_TRUE(answer) << Describe(answer.error());
  EXPECT_TRUE(answer->cdi_devices.empty());
  EXPECT_EQ(answer->device_nodes,
            (std::vector<std::string>{"/dev/infiniband/uverbs2", "/dev/infiniband/uverbs6",
                                      "/dev/infiniband/rdma_cm"}));
  ASSERT_EQ(answer->mounts.size(), 1U);
  EXPECT_EQ(answer->mounts[0].container_path, "/etc/nccl.conf");
  EXPECT_EQ(answer->mounts[0].host_path, nccl::DeviceNcclConfigPath(root_, vfs0_[0]));
  const auto record = ReadAllocation(root_, vfs0_[0]);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->device_nodes, DeviceNodeMode::kMount);
}

TEST_F(AllocateTest, MountWithoutNcclConfigHidesNoFile) {
  const auto answer =
      allocator_.Allocate(*Pool(R"(, "deviceNodes": "mount", "ncclConfig": "off")"), {vfs0_[0]});
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->mounts.empty());
  EXPECT_EQ(answer->device_nodes, std::vector<std::string>{"/dev/infiniband/uverbs2"});
}

TEST_F(AllocateTest, MountNeedsADeviceNode) {
  sysfs_.Remove("/sys/bus/pci/devices/" + vfs0_[0] + "/infiniband_verbs");
  const auto answer = allocator_.Allocate(*Pool(R"(, "deviceNodes": "mount")"), {vfs0_[0]});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
  EXPECT_NE(answer.error().hint.find("netns shared"), std::string::npos);
}

TEST_F(AllocateTest, SriovdpPoolsAnswerAsThatProgram) {
  sysfs_.Write("/dev/infiniband/rdma_cm", "");
  sysfs_.Write("/sys/bus/pci/devices/" + vfs0_[0] + "/infiniband_mad/umad5/ibdev", "pf0_rdma0\n");
  const auto pool = SriovdpPool(
      R"({"resourceName": "sriov-rdma", "selectors": {"isRdma": true},
          "additionalInfo": {"*": {"a": "1", "b": "1"}, ")" +
      vfs0_[0] + R"(": {"b": "2"}}})");
  const auto answer = allocator_.Allocate(*pool, {vfs0_[0]});
  ASSERT_TRUE(answer) << Describe(answer.error());
  EXPECT_TRUE(answer->cdi_devices.empty());
  EXPECT_TRUE(answer->mounts.empty());
  EXPECT_EQ(answer->device_nodes,
            (std::vector<std::string>{"/dev/infiniband/uverbs2", "/dev/infiniband/umad5",
                                      "/dev/infiniband/rdma_cm"}));
  EXPECT_EQ(answer->envs.at("PCIDEVICE_INTEL_COM_SRIOV-RDMA"), vfs0_[0]);
  const Json info = Json::parse(answer->envs.at("PCIDEVICE_INTEL_COM_SRIOV-RDMA_INFO"));
  EXPECT_EQ(info[vfs0_[0]], Json::parse(R"({"generic": {"deviceID": ")" + vfs0_[0] + R"("},
      "rdma": {"uverbs": "/dev/infiniband/uverbs2", "umad": "/dev/infiniband/umad5",
               "rdma_cm": "/dev/infiniband/rdma_cm", "rdma_dev": "pf0_rdma0"},
      "extra": {"a": "1", "b": "2"}})"));
  const auto record = ReadAllocation(root_, vfs0_[0]);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->nccl_config, NcclConfigPolicy::kOff);

  const auto plain =
      allocator_.Allocate(*SriovdpPool(R"({"resourceName": "net", "selectors": {}})"), {vfs0_[0]});
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->device_nodes.empty());
}

// What Allocate gives beyond RDMA nodes, and the device-info files.

class GrantTest : public TwoRails {
 protected:
  [[nodiscard]] std::shared_ptr<const resources::ResourcePool> PoolFor(const std::string& selectors,
                                                                       const std::string& more = "") const {
    const auto specs = resources::ParseSriovdpConfig(
        R"({"resourceList": [{"resourceName": "net", "selectors": )" + selectors + more + "}]}",
        "config.json", "intel.com");
    if (!specs) {
      ADD_FAILURE() << Describe(specs.error());
      return std::make_shared<resources::ResourcePool>();
    }
    return BuildPools(*specs, *Discover()).front();
  }
  resources::AllocateAnswer Given(const resources::ResourcePool& pool, const Strings& ids) {
    const auto answer = allocator_.Allocate(pool, ids);
    if (!answer) {
      ADD_FAILURE() << Describe(answer.error());
      return {};
    }
    return *answer;
  }
  static Json InfoOf(const resources::AllocateAnswer& answer) {
    const auto found = answer.envs.find("PCIDEVICE_INTEL_COM_NET_INFO");
    return found == answer.envs.end() ? Json() : Json::parse(found->second);
  }
  [[nodiscard]] Json DeviceInfo(const std::string& id) const {
    const auto text = ReadFile(resources::DeviceInfoPath(root_, "intel.com/net", id));
    return text && *text ? Json::parse(**text) : Json();
  }

  [[nodiscard]] Json Spec(const std::string& id) const {
    const auto text = ReadFile(resources::CdiGrantPath(root_, id));
    return text && *text ? Json::parse(**text) : Json();
  }

  resources::Allocator allocator_{root_};
};

TEST_F(GrantTest, VfioGroupsAndTheirControlNodeOnce) {
  BindToUserSpace(sysfs_, vfs0_[0], "vfio-pci", "42");
  BindToUserSpace(sysfs_, vfs0_[1], "vfio-pci", "43");
  BindToUserSpace(sysfs_, vfs0_[2], "vfio-pci", "43");
  const auto pool = PoolFor(R"({"drivers": ["vfio-pci"]})");
  const auto answer = Given(*pool, {vfs0_[0], vfs0_[1], vfs0_[2]});
  EXPECT_EQ(answer.device_nodes, (Strings{"/dev/vfio/vfio", "/dev/vfio/42", "/dev/vfio/43"}));
  EXPECT_TRUE(answer.renamed_nodes.empty());
  EXPECT_EQ(InfoOf(answer)[vfs0_[1]], Json::parse(R"({"generic": {"deviceID": ")" + vfs0_[1] + R"("},
      "vfio": {"mount": "/dev/vfio/vfio", "dev-mount": "/dev/vfio/43"}})"));
  EXPECT_EQ(DeviceInfo(vfs0_[1])["type"], "pci");
}

TEST_F(GrantTest, VfioWithoutAnIommuHasAnotherNodeOnTheHost) {
  BindToUserSpace(sysfs_, vfs0_[0], "vfio-pci", "5");
  sysfs_.Write("/sys/kernel/iommu_groups/5/name", "vfio-noiommu\n");
  const auto answer = Given(*PoolFor(R"({"drivers": ["vfio-pci"]})"), {vfs0_[0]});
  EXPECT_EQ(answer.device_nodes, Strings{"/dev/vfio/vfio"});
  EXPECT_EQ(answer.renamed_nodes,
            (std::vector<resources::DeviceNode>{{"/dev/vfio/noiommu-5", "/dev/vfio/5"}}));
  EXPECT_EQ(InfoOf(answer)[vfs0_[0]]["vfio"]["dev-mount"], "/dev/vfio/5");
}

TEST_F(GrantTest, WhatAUserSpaceDriverHasLostIsAnError) {
  BindToUserSpace(sysfs_, vfs0_[0], "vfio-pci");
  BindToUserSpace(sysfs_, vfs0_[1], "igb_uio");
  const auto pool = PoolFor(R"({"drivers": ["vfio-pci", "igb_uio"]})");
  sysfs_.Remove("/sys/bus/pci/devices/" + vfs0_[0] + "/iommu_group");
  sysfs_.Remove("/sys/bus/pci/devices/" + vfs0_[1] + "/uio");
  for (const std::string& id : {vfs0_[0], vfs0_[1]}) {
    const auto answer = allocator_.Allocate(*pool, {id});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
    EXPECT_NE(answer.error().message.find(id), std::string::npos);
    EXPECT_FALSE(answer.error().hint.empty());
  }
}

TEST_F(GrantTest, UioNodesAreReadAtAllocate) {
  BindToUserSpace(sysfs_, vfs0_[0], "uio_pci_generic");
  const auto pool = PoolFor(R"({"drivers": ["uio_pci_generic"]})");
  EXPECT_EQ(Given(*pool, {vfs0_[0]}).device_nodes, Strings{"/dev/uio3"});
  sysfs_.Remove("/sys/bus/pci/devices/" + vfs0_[0] + "/uio/uio3");
  sysfs_.Write("/sys/bus/pci/devices/" + vfs0_[0] + "/uio/uio8/name", "x\n");
  const auto answer = Given(*pool, {vfs0_[0]});
  EXPECT_EQ(answer.device_nodes, Strings{"/dev/uio8"});
  EXPECT_EQ(InfoOf(answer)[vfs0_[0]]["uio"]["mount"], "/dev/uio8");
}

TEST_F(GrantTest, VhostNetWhereTheNodeHasIt) {
  const auto pool = PoolFor(R"({"needVhostNet": true})");
  EXPECT_FALSE(InfoOf(Given(*pool, {vfs0_[0]}))[vfs0_[0]].contains("vhost"));
  sysfs_.Write("/dev/vhost-net", "");
  sysfs_.Write("/dev/net/tun", "");
  const auto answer = Given(*pool, {vfs0_[0], vfs0_[1]});
  EXPECT_EQ(answer.device_nodes, (Strings{"/dev/vhost-net", "/dev/net/tun"}));
  EXPECT_EQ(InfoOf(answer)[vfs0_[1]]["vhost"],
            Json::parse(R"({"net-mount": "/dev/vhost-net", "tun-mount": "/dev/net/tun"})"));
}

TEST_F(GrantTest, EachDeviceGetsWhatItsOwnSelectorAsksFor) {
  sysfs_.Write("/dev/vhost-net", "");
  sysfs_.Write("/dev/net/tun", "");
  const auto pool =
      PoolFor(R"([{"pfNames": ["pf0"], "needVhostNet": true}, {"pfNames": ["pf1"], "isRdma": true}])");
  const auto plain = Given(*pool, {vfs0_[0]});
  EXPECT_EQ(plain.device_nodes, (Strings{"/dev/vhost-net", "/dev/net/tun"}));
  EXPECT_FALSE(InfoOf(plain)[vfs0_[0]].contains("rdma"));
  const auto rdma = Given(*pool, {vfs1_[0]});
  EXPECT_EQ(rdma.device_nodes, Strings{"/dev/infiniband/uverbs6"});
  EXPECT_FALSE(InfoOf(rdma)[vfs1_[0]].contains("vhost"));
}

TEST_F(GrantTest, VdpaVhostHasANodeAndItsOwnDeviceInfo) {
  AddVdpa(sysfs_, vfs0_[0], "vdpa0", "vhost_vdpa");
  const auto pool = PoolFor(R"({"vdpaType": "vhost"})");
  const auto answer = Given(*pool, {vfs0_[0]});
  EXPECT_EQ(answer.device_nodes, Strings{"/dev/vhost-vdpa-5"});
  EXPECT_EQ(InfoOf(answer)[vfs0_[0]]["vdpa"]["mount"], "/dev/vhost-vdpa-5");
  EXPECT_EQ(DeviceInfo(vfs0_[0]), Json::parse(R"({"type": "vdpa", "version": "1.1.0", "vdpa": {
      "parent-device": "vdpa0", "driver": "vhost", "path": "/dev/vhost-vdpa-5",
      "pci-address": ")" + vfs0_[0] + R"(", "pf-pci-address": "0000:43:00.0"}})"));
  sysfs_.Remove("/sys/bus/vdpa/devices/vdpa0");
  const auto gone = allocator_.Allocate(*pool, {vfs0_[0]});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kConflict);
}

TEST_F(GrantTest, VdpaVirtioHasNoNode) {
  AddVdpa(sysfs_, vfs0_[0], "vdpa0", "virtio_vdpa");
  const auto answer = Given(*PoolFor(R"({"vdpaType": "virtio"})"), {vfs0_[0]});
  EXPECT_TRUE(answer.device_nodes.empty());
  EXPECT_EQ(InfoOf(answer)[vfs0_[0]]["vdpa"], Json::object());
  EXPECT_EQ(DeviceInfo(vfs0_[0])["vdpa"]["driver"], "virtio");
  EXPECT_FALSE(DeviceInfo(vfs0_[0])["vdpa"].contains("path"));
}

TEST_F(GrantTest, SubfunctionsGetTheirOwnRdmaNodes) {
  AddSubfunction(sysfs_, kPf0, "mlx5_core.sf.2", 88, "sf0", "mlx5_7");
  const auto pool =
      PoolFor(R"({"auxTypes": ["sf"], "isRdma": true})",
              R"(, "deviceType": "auxNetDevice", "additionalInfo": {"0000:43:00.0": {"a": "pf", "b": "pf"},
                               "mlx5_core.sf.2": {"b": "sf"}})");
  const auto answer = Given(*pool, {"mlx5_core.sf.2"});
  EXPECT_EQ(answer.device_nodes, Strings{"/dev/infiniband/uverbs77"});
  EXPECT_EQ(answer.envs.at("PCIDEVICE_INTEL_COM_NET"), "mlx5_core.sf.2");
  EXPECT_EQ(InfoOf(answer)["mlx5_core.sf.2"], Json::parse(R"({"generic": {"deviceID": "mlx5_core.sf.2"},
      "rdma": {"uverbs": "/dev/infiniband/uverbs77", "rdma_dev": "mlx5_7"}, "extra": {"a": "pf", "b": "sf"}})"));
  EXPECT_TRUE(DeviceInfo("mlx5_core.sf.2").is_null());
}

TEST_F(GrantTest, ExtraIsThereForAllDevicesOnceThereIsAdditionalInfo) {
  const auto pool = PoolFor("{}", R"(, "additionalInfo": {")" + vfs0_[0] + R"(": {"token": "x"}})");
  const auto info = InfoOf(Given(*pool, {vfs0_[0], vfs0_[1]}));
  EXPECT_EQ(info[vfs0_[0]]["extra"]["token"], "x");
  EXPECT_EQ(info[vfs0_[1]]["extra"], Json::object());
}

// As in a container, which has no /dev of the host's.
TEST_F(GrantTest, SharedNodesAreKnownFromSysfs) {
  sysfs_.Remove("/dev/infiniband");
  sysfs_.Write("/sys/class/misc/rdma_cm/dev", "10:58\n");
  sysfs_.Write("/sys/class/misc/vhost-net/dev", "10:238\n");
  const auto pool = PoolFor(R"({"isRdma": true, "needVhostNet": true})");
  auto answer = Given(*pool, {vfs0_[0]});
  EXPECT_EQ(answer.device_nodes.back(), resources::kRdmaCm);
  EXPECT_EQ(InfoOf(answer)[vfs0_[0]]["rdma"]["rdma_cm"], resources::kRdmaCm);
  EXPECT_FALSE(InfoOf(answer)[vfs0_[0]].contains("vhost")) << "there is no tun";
  sysfs_.Write("/sys/class/misc/tun/dev", "10:200\n");
  answer = Given(*pool, {vfs0_[0]});
  EXPECT_EQ(InfoOf(answer)[vfs0_[0]]["vhost"]["net-mount"], "/dev/vhost-net");
}

TEST_F(GrantTest, NamesThatAreNotUtf8DoNotEndTheProgram) {
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "odd", .rdma = "mlx5_\xff", .total_vfs = 0});
  const auto pool = PoolFor(R"({"pciAddresses": ["0000:c3:00.0"], "isRdma": true})");
  EXPECT_TRUE(resources::Allocator(root_).Allocate(*pool, {"0000:c3:00.0"}));
}

TEST_F(GrantTest, WithCdiTheNodesAreInASpecOfTheDevicesOwn) {
  BindToUserSpace(sysfs_, vfs0_[0], "vfio-pci", "5");
  sysfs_.Write("/sys/kernel/iommu_groups/5/name", "vfio-noiommu\n");
  resources::ResourcePool pool = *PoolFor(R"([{"drivers": ["vfio-pci"]}, {"isRdma": true}])");
  pool.spec.cdi_nodes = true;
  const auto answer = Given(pool, {vfs0_[1], vfs0_[0]});
  EXPECT_EQ(answer.cdi_devices, (Strings{"intel.com/net-pci=" + vfs0_[0], "intel.com/net-pci=" + vfs0_[1]}));
  EXPECT_TRUE(answer.device_nodes.empty());
  EXPECT_TRUE(answer.renamed_nodes.empty());
  EXPECT_EQ(answer.envs.at("PCIDEVICE_INTEL_COM_NET"), vfs0_[0] + "," + vfs0_[1]);
  EXPECT_EQ(Spec(vfs0_[0]),
            Json::parse(R"({"cdiVersion": "0.5.0", "kind": "intel.com/net-pci", "devices": [{"name": ")" +
                        vfs0_[0] + R"(", "containerEdits": {"deviceNodes": [
      {"path": "/dev/vfio/vfio", "permissions": "rw"},
      {"path": "/dev/vfio/5", "hostPath": "/dev/vfio/noiommu-5", "permissions": "rw"}]}}]})"));
  EXPECT_EQ(Spec(vfs0_[1])["devices"][0]["containerEdits"]["deviceNodes"][0]["path"],
            "/dev/infiniband/uverbs3");
}

TEST_F(GrantTest, AReboot) {
  resources::ResourcePool pool = *PoolFor(R"({"isRdma": true})");
  pool.spec.cdi_nodes = true;
  (void)Given(pool, {vfs0_[1]});
  const Json before = Spec(vfs0_[1]);
  sysfs_.Remove("/run/cdi");
  ASSERT_TRUE(resources::RestoreAllocated(root_, {std::make_shared<resources::ResourcePool>(pool)}));
  EXPECT_EQ(Spec(vfs0_[1]), before) << "kubelet's checkpoint still names it";
  EXPECT_TRUE(Spec(vfs0_[2]).is_null());
}

TEST_F(GrantTest, DeviceInfoComesBackForAllocatedDevicesOnly) {
  const auto pool = PoolFor("{}");
  (void)Given(*pool, {vfs0_[0]});
  sysfs_.Remove("/var/run");
  ASSERT_TRUE(resources::RestoreAllocated(root_, {pool}));
  EXPECT_EQ(DeviceInfo(vfs0_[0])["pci"]["pci-address"], vfs0_[0]);
  EXPECT_TRUE(DeviceInfo(vfs0_[1]).is_null());
  // Outdated: after the reboot the RDMA device is called otherwise.
  sysfs_.Remove("/var/run/k8s.cni.cncf.io/devinfo/dp/intel.com-net-" + vfs0_[0] + "-device.json");
  sysfs_.Write("/var/run/k8s.cni.cncf.io/devinfo/dp/intel.com-net-" + vfs0_[0] + "-device.json", "{}");
  ASSERT_TRUE(resources::RestoreAllocated(root_, {pool}));
  EXPECT_EQ(DeviceInfo(vfs0_[0])["type"], "pci");
}

TEST_F(GrantTest, RestoringGoesOnAfterAnErrorAndPassesOverOtherResources) {
  AddVdpa(sysfs_, vfs0_[0], "vdpa0", "vhost_vdpa");
  const auto pool = PoolFor(R"([{"vdpaType": "vhost"}, {}])");
  (void)Given(*pool, {vfs0_[0]});
  (void)Given(*pool, {vfs0_[1]});
  sysfs_.Write("/var/lib/railhead/allocations/" + vfs0_[2] + ".json",
               R"({"version": 1, "resource": "other/net", "deviceId": ")" + vfs0_[2] +
                   R"(", "siblings": [], "generation": 1, "ncclConfig": "off", "deviceNodes": "mount"})");
  sysfs_.Write("/var/lib/railhead/allocations/" + vfs0_[3] + ".json", "{damaged");
  sysfs_.Remove("/var/run");
  sysfs_.Remove("/sys/bus/vdpa/devices/vdpa0");
  EXPECT_FALSE(resources::RestoreAllocated(root_, {pool}));
  EXPECT_EQ(DeviceInfo(vfs0_[1])["type"], "pci");
  EXPECT_TRUE(DeviceInfo(vfs0_[2]).is_null());
  EXPECT_TRUE(DeviceInfo(vfs0_[3]).is_null());
}

}  // namespace
}  // namespace railhead::testing
