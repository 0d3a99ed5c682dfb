#include "deviceplugin/node/resources/allocate.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "cni/nccl/nccl_config.h"
#include "cni/state/allocation.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class AllocateTest : public TwoRails {
 protected:
  resources::Allocator allocator_{root_};

  std::shared_ptr<const resources::ResourcePool> SriovdpPool(const std::string& resource) const {
    const auto specs =
        resources::ParseSriovdpConfig(R"({"resourceList": [)" + resource + "]}", "config.json", "intel.com");
    if (!specs) ADD_FAILURE() << Describe(specs.error());
    return BuildPools(specs.value(), *Look()).front();
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
  EXPECT_EQ((*first)->handoff, HandoffPolicy::kRequired);
  EXPECT_EQ((*first)->delivery, Delivery::kCdi);

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

TEST_F(AllocateTest, MountDeliveryGivesNodesAndTheFirstDevicesFile) {
  sysfs_.Write("/dev/infiniband/rdma_cm", "");
  const auto answer = allocator_.Allocate(*Pool(R"(, "delivery": "mount")"), {vfs1_[0], vfs0_[0]});
  ASSERT_TRUE(answer) << Describe(answer.error());
  EXPECT_TRUE(answer->cdi_devices.empty());
  EXPECT_EQ(answer->device_nodes,
            (std::vector<std::string>{"/dev/infiniband/uverbs2", "/dev/infiniband/uverbs6",
                                      "/dev/infiniband/rdma_cm"}));
  ASSERT_EQ(answer->mounts.size(), 1U);
  EXPECT_EQ(answer->mounts[0].container_path, "/etc/nccl.conf");
  EXPECT_EQ(answer->mounts[0].host_path, nccl::DeviceHandoffPath(root_, vfs0_[0]));
  const auto record = ReadAllocation(root_, vfs0_[0]);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->delivery, Delivery::kMount);
}

TEST_F(AllocateTest, MountWithoutHandoffHidesNoFile) {
  const auto answer = allocator_.Allocate(*Pool(R"(, "delivery": "mount", "handoff": "off")"), {vfs0_[0]});
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->mounts.empty());
  EXPECT_EQ(answer->device_nodes, std::vector<std::string>{"/dev/infiniband/uverbs2"});
}

TEST_F(AllocateTest, MountNeedsADeviceNode) {
  sysfs_.Remove("/sys/bus/pci/devices/" + vfs0_[0] + "/infiniband_verbs");
  const auto answer = allocator_.Allocate(*Pool(R"(, "delivery": "mount")"), {vfs0_[0]});
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
  EXPECT_EQ((*record)->handoff, HandoffPolicy::kOff);

  const auto plain =
      allocator_.Allocate(*SriovdpPool(R"({"resourceName": "net", "selectors": {}})"), {vfs0_[0]});
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->device_nodes.empty());
}

}  // namespace
}  // namespace railhead::testing
