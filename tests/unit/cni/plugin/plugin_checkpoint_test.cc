// Which devices are the pod's: kubelet's checkpoint and the allocation records, without
// a daemon and without an API server.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "cni/state/allocation.h"
#include "netns/base/text.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

constexpr const char* kUid = "6a5a2b9e-0c1f-4f7e-9d56-000000000001";
constexpr const char* kPrevious =
    R"(,"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"x"}],
       "ips":[{"address":"10.244.0.5/24","interface":0}]})";

class PluginCheckpointTest : public RailsFixture {
 protected:
  void AllocateAs(const std::string& resource, const std::vector<std::string>& devices) {
    for (const auto& device : devices) {
      ASSERT_TRUE(WriteAllocation(sysfs_.root(),
                                  {resource, device, devices, 1, HandoffPolicy::kRequired, Delivery::kCdi}));
    }
  }
  static Call OfPod(const std::string& fields = "", const std::string& uid = kUid) {
    return {.network = "rails",
            .config = IpamForAll() + fields,
            .args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=job-0;K8S_POD_UID=" + uid};
  }
  void ExpectAttached(const Call& call, const std::vector<std::string>& names) {
    const auto before = World();
    const auto added = Add(call);
    ASSERT_TRUE(added) << Describe(added.error());
    EXPECT_EQ(OurLinks(pod_), names);
    const auto checked = Check(call);
    EXPECT_TRUE(checked) << Describe(checked.error());
    ASSERT_TRUE(Del(call));
    EXPECT_EQ(ChangedSince(before), "");
  }
};

TEST_F(PluginCheckpointTest, DevicesOfAllContainersOfThePod) {
  AllocateAs(kDefaultResource, {Bdf(0), Bdf(1)});
  AllocateAs("railhead.io/other", {Bdf(2, 1)});
  AllocateAs(kDefaultResource, {Bdf(2, 2)});
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(1), Bdf(0)}},
                   {kUid, "sidecar", "railhead.io/other", {Bdf(2, 1)}},
                   {"another-pod", "main", kDefaultResource, {Bdf(2, 2)}}});
  ExpectAttached(OfPod(), {"rail0", "rail1", "rail2"});
}

TEST_F(PluginCheckpointTest, DevicesOfOthersAreLeft) {
  AllocateAs(kDefaultResource, {Bdf(0)});
  // The id of a VF that is ours by an old record, given by another device plugin now.
  AllocateAs(kDefaultResource, {Bdf(1)});
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}},
                   {kUid, "main", "intel.com/sriov", {Bdf(1)}},
                   {kUid, "main", "nvidia.com/gpu", {"GPU-5a1b9c2e-0000-0000-0000-000000000000"}},
                   {kUid, "main", "vendor.example/nic", {Bdf(2)}}});
  ExpectAttached(OfPod(), {"rail0"});
}

TEST_F(PluginCheckpointTest, ResourceNameChooses) {
  AllocateAs(kDefaultResource, {Bdf(0)});
  WriteCheckpoint(
      {{kUid, "main", kDefaultResource, {Bdf(0)}}, {kUid, "main", "intel.com/sriov", {Bdf(1), Bdf(2)}}});
  ExpectAttached(OfPod(R"(,"resourceName":"intel.com/sriov")"), {"rail1", "rail2"});
  ExpectAttached(OfPod(R"(,"resourceName":"railhead.io/roce")"), {"rail0"});
  const auto none = Add(OfPod(R"(,"resourceName":"railhead.io/none")"));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no device of railhead.io/none"), std::string::npos)
      << none.error().message;
}

TEST_F(PluginCheckpointTest, ListsOfOlderKubelets) {
  AllocateAs(kDefaultResource, {Bdf(0), Bdf(2)});
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(2), Bdf(0)}}}, true);
  ExpectAttached(OfPod(), {"rail0", "rail2"});
}

TEST_F(PluginCheckpointTest, DeviceOfTheRuntimeComesFirst) {
  AllocateAs(kDefaultResource, {Bdf(0), Bdf(1)});
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0), Bdf(1)}}});
  Call call = OfPod();
  call.config = R"("ipam":{},"handoff":"off","deviceID":")" + Bdf(1) + "\"";
  ASSERT_TRUE(Add(call));
  EXPECT_EQ(OurLinks(pod_), std::vector<std::string>{"net1"}) << "Multus attaches one by one";
}

TEST_F(PluginCheckpointTest, WithoutCheckpoint) {
  const auto before = World();
  const auto added = Add(OfPod());
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniNotFound);
  EXPECT_NE(added.error().message.find(kUid), std::string::npos) << added.error().message;
  EXPECT_NE(added.error().message.find(kCheckpoint), std::string::npos) << added.error().message;
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginCheckpointTest, WithoutPodUid) {
  AllocateAs(kDefaultResource, {Bdf(0)});
  WriteCheckpoint({{"", "main", kDefaultResource, {Bdf(0)}}});
  for (const Call& call : {Call{.config = IpamForAll()}, OfPod("", "")}) {
    const auto added = Add(call);
    ASSERT_FALSE(added) << call.args;
    EXPECT_EQ(CniCodeOf(added.error().code), kCniInvalidConfig);
    EXPECT_NE(Describe(added.error()).find("K8S_POD_UID"), std::string::npos);
  }
}

// A pod without its rails would start, and its job hang: it must not.
TEST_F(PluginCheckpointTest, DamagedCheckpointStopsTheAdd) {
  const auto before = World();
  for (const char* text : {"{", "[]", R"({"Data":{}} trailing)", R"({"Checksum":1})",
                           R"({"Data":{"PodDeviceEntries":[{"PodUID":7}]}})",
                           R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c",
                               "ResourceName":"r","DeviceIDs":"x"}]}})",
                           R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c",
                               "ResourceName":"r","DeviceIDs":{"0":[7]}}]}})"}) {
    WriteFileAt(sysfs_.directory() + kCheckpoint, text);
    const auto added = Add(OfPod(kPrevious));
    ASSERT_FALSE(added) << text;
    EXPECT_NE(added.error().message.find("kubelet_internal_checkpoint"), std::string::npos)
        << added.error().message;
    EXPECT_EQ(ChangedSince(before), "");
  }
}

// kubelet writes null for what is empty.
TEST_F(PluginCheckpointTest, NullIsEmpty) {
  WriteFileAt(sysfs_.directory() + kCheckpoint,
              R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1})");
  const auto added = Add(OfPod(kPrevious));
  EXPECT_TRUE(added) << Describe(added.error());
}

// The cluster network carries every pod of the node, also those without devices.
TEST_F(PluginCheckpointTest, ChainedPodWithoutDevicesPasses) {
  AllocateAs(kDefaultResource, {Bdf(0)});
  WriteCheckpoint({{"another-pod", "main", kDefaultResource, {Bdf(0)}}});
  const auto before = World();
  const Call call = OfPod(kPrevious);
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  const auto json = nlohmann::json::parse(*added, nullptr, false);
  EXPECT_EQ(json["interfaces"].size(), 1U);
  EXPECT_EQ(json["interfaces"][0]["name"], "eth0");
  EXPECT_EQ(json["ips"][0]["address"], "10.244.0.5/24");
  EXPECT_EQ(kernel_.calls(), 0) << "nothing was even looked at: " << kernel_.Log();
  EXPECT_EQ(IpamLog(), "");
  const auto checked = Check(call);
  EXPECT_TRUE(checked) << Describe(checked.error());
  const auto deleted = Del(call);
  EXPECT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

// kubelet forgets a pod's devices when the pod has ended, which DEL may come after.
TEST_F(PluginCheckpointTest, DelNeedsNoCheckpoint) {
  AllocateAs(kDefaultResource, {Bdf(0), Bdf(1)});
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0), Bdf(1)}}});
  const auto before = World();
  ASSERT_TRUE(Add(OfPod()));
  WriteFileAt(sysfs_.directory() + kCheckpoint, "{");
  const auto checked = Check(OfPod());
  EXPECT_TRUE(checked) << Describe(checked.error());
  const auto deleted = Del(OfPod());
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginCheckpointTest, DeviceThatIsGoneStopsTheAdd) {
  AllocateAs(kDefaultResource, {Bdf(0), "0000:99:00.1"});
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0), "0000:99:00.1"}}});
  const auto before = World();
  const auto added = Add(OfPod());
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("0000:99:00.1 does not exist"), std::string::npos);
  EXPECT_EQ(ChangedSince(before), "");
}

}  // namespace
}  // namespace railhead::testing
