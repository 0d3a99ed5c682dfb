// Which devices belong to the pod: by kubelet's checkpoint and the allocation records, without a daemon or an
// API server. And by late binding.
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cni/protocol/cni_result.h"
#include "cni/state/allocation.h"
#include "cni/state/bind_protocol.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
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
      ASSERT_TRUE(WriteAllocation(
          sysfs_.root(), {resource, device, devices, 1, NcclConfigPolicy::kRequired, DeviceNodeMode::kCdi}));
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

// Who can write to it gives himself any device.
TEST_F(PluginCheckpointTest, ACheckpointThatOthersCanChangeIsRefused) {
  AllocateAs(kDefaultResource, {Bdf(0)});
  WriteCheckpoint({{kUid, "main", kDefaultResource, {Bdf(0)}}});
  const std::string path = paths::KubeletCheckpoint(sysfs_.root());
  const auto before = World();
  for (const mode_t mode : {0620U, 0602U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto added = Add(OfPod());
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), kCniPermission) << Describe(added.error());
    EXPECT_NE(Describe(added.error()).find("chmod go-w " + path), std::string::npos)
        << Describe(added.error());
    EXPECT_EQ(ChangedSince(before), "");
  }
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ExpectAttached(OfPod(), {"rail0"});
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
  call.config = R"("ipam":{},"ncclConfig":"off","deviceID":")" + Bdf(1) + "\"";
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

// Without its rails the pod would start, and its job would hang: ADD fails.
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

// For an empty list kubelet writes null.
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

// After the pod has ended, kubelet forgets its devices. DEL may come later.
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

// Late binding as ADD sees it: kubelet assigned slots, and a daemon maps them to devices.

constexpr const char* kLateUid = "6a5a2b9e-0c1f-4f7e-9d56-000000000002";
constexpr const char* kSlotA = "slot-1a2b3c4d-n0-000";
constexpr const char* kSlotB = "slot-1a2b3c4d-n1-001";

// Listens like railheadd and sends a fixed answer.
class StandInDaemon {
 public:
  StandInDaemon(const Root& root, std::string answer) : answer_(std::move(answer)) {
    const std::string path = paths::BindSocket(root);
    EXPECT_TRUE(MakeDirectories(path.substr(0, path.rfind('/'))));
    (void)::unlink(path.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this] { Loop(); });
  }
  StandInDaemon(const StandInDaemon&) = delete;
  StandInDaemon& operator=(const StandInDaemon&) = delete;
  ~StandInDaemon() {
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] std::string asked() const { return asked_; }

 private:
  void Loop() {
    while (!stopping_) {
      const UniqueFd connection(::accept(listener_.get(), nullptr, nullptr));
      if (!connection.valid()) continue;
      std::array<char, 4096> buffer{};
      const ssize_t n = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
      asked_.assign(buffer.data(), static_cast<std::size_t>(n > 0 ? n : 0));
      (void)::send(connection.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }

  const std::string answer_;
  std::string asked_;
  UniqueFd listener_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class PluginLateTest : public RailsFixture {
 protected:
  void SetUp() override {
    RailsFixture::SetUp();
    const std::vector<std::string> slots = {kSlotA, kSlotB};
    for (const auto& slot : slots) {
      ASSERT_TRUE(WriteAllocation(sysfs_.root(), {kDefaultResource, slot, slots, 1,
                                                  NcclConfigPolicy::kRequired, DeviceNodeMode::kCdi}));
    }
    const nlohmann::json entry = {{"PodUID", kLateUid},
                                  {"ContainerName", "main"},
                                  {"ResourceName", kDefaultResource},
                                  {"DeviceIDs", {{"0", {kSlotA}}, {"1", {kSlotB}}}},
                                  {"AllocResp", ""}};
    WriteFileAt(paths::KubeletCheckpoint(sysfs_.root()),
                nlohmann::json{{"Data", {{"PodDeviceEntries", {entry}}}}, {"Checksum", 1}}.dump());
  }
  [[nodiscard]] std::string Bound() const {
    return FormatBindAnswer(Bindings{{kSlotA, Bdf(0)}, {kSlotB, Bdf(1)}});
  }
  static Call OfPod() {
    return {.network = "rails", .config = IpamForAll(), .args = std::string("K8S_POD_UID=") + kLateUid};
  }
  nlohmann::json Cdi(const std::string& slot) {
    return nlohmann::json::parse(File("/run/cdi/railhead-" + slot + ".json"), nullptr, false);
  }
};

TEST_F(PluginLateTest, SlotsBecomeDevices) {
  StandInDaemon daemon(sysfs_.root(), Bound());
  const auto before = World();
  const auto added = Add(OfPod());
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(pod_), (std::vector<std::string>{"rail0", "rail1"}));
  const auto request = ParseBindRequest(daemon.asked());
  ASSERT_TRUE(request) << daemon.asked();
  EXPECT_EQ(request->pod_uid, kLateUid);
  EXPECT_EQ(request->container_id, "c1");
  EXPECT_EQ(request->slots, (std::vector<std::string>{kSlotA, kSlotB}));

  // What CreateContainer injects, by the name that Allocate gave; the whole pod's values.
  for (const char* slot : {kSlotA, kSlotB}) {
    const auto spec = Cdi(slot);
    ASSERT_FALSE(spec.is_discarded()) << slot;
    EXPECT_EQ(spec["devices"][0]["name"], slot);
    const auto& edits = spec["devices"][0]["containerEdits"];
    EXPECT_EQ(edits["env"][0], "PCIDEVICE_RAILHEAD_IO_ROCE=" + Bdf(0) + "," + Bdf(1));
    EXPECT_FALSE(edits["deviceNodes"].empty());
    EXPECT_FALSE(edits["mounts"].empty()) << "nccl.conf";
  }
  EXPECT_EQ(File("/run/cdi/railhead-" + Bdf(0) + ".json"), "") << "nobody asks for that name";

  // The daemon finds them by slot, as the gate before a container's start does.
  const Journal journal(sysfs_.root());
  const auto entry = journal.FindByDevice(kSlotB);
  ASSERT_TRUE(entry && *entry);
  EXPECT_EQ((*entry)->phase, Phase::kDone);
  EXPECT_TRUE(journal.HoldsDevice(kSlotB).value());
  const auto scan = journal.Scan();
  ASSERT_TRUE(scan);
  EXPECT_TRUE(scan->orphaned.empty());

  const auto checked = Check(OfPod());
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(OfPod()));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginLateTest, OneSlotFromMultus) {
  StandInDaemon daemon(sysfs_.root(), Bound());
  const auto before = World();
  const auto with = [&](const char* slot, const char* address) {
    return std::string(R"("deviceID":")") + slot + R"(",)" + Ipam(address);
  };
  const std::string args = std::string("K8S_POD_UID=") + kLateUid;
  const Call first{.network = "a", .ifname = "net1", .config = with(kSlotA, "10.100.0.10/24"), .args = args};
  const Call second{.network = "b", .ifname = "net2", .config = with(kSlotB, "10.200.0.10/24"), .args = args};
  const auto one = Add(first);
  ASSERT_TRUE(one) << Describe(one.error());
  const auto two = Add(second);
  ASSERT_TRUE(two) << Describe(two.error());
  for (const char* slot : {kSlotA, kSlotB}) {
    EXPECT_EQ(Cdi(slot)["devices"][0]["containerEdits"]["env"][0],
              "PCIDEVICE_RAILHEAD_IO_ROCE=" + Bdf(0) + "," + Bdf(1))
        << "the same in both, or chance would decide";
  }
  ASSERT_TRUE(Del(second));
  ASSERT_TRUE(Del(first));
  EXPECT_EQ(ChangedSince(before), "");
}

// For the second slot the variables of the first slot's spec are written again. Its mounts stay.
TEST_F(PluginLateTest, ASlotWithoutNcclConfigLeavesTheTopologyFileOfTheOthers) {
  StandInDaemon daemon(sysfs_.root(), Bound());
  auto fabric = nlohmann::json::parse(File("/etc/railhead/fabric.json"));
  fabric["ncclConfig"]["topology"] = "always";
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json", fabric.dump());
  const std::string args = std::string("K8S_POD_UID=") + kLateUid;
  const auto of_slot = [](const char* slot) { return std::string("\"deviceID\":\"") + slot + "\""; };
  const auto first = Add({.network = "a", .config = of_slot(kSlotA) + "," + Ipam(), .args = args});
  ASSERT_TRUE(first) << Describe(first.error());
  ASSERT_EQ(Cdi(kSlotA)["devices"][0]["containerEdits"]["mounts"].size(), 3U)
      << "for NCCL, RCCL, and the topology";
  const auto second =
      Add({.network = "b",
           .ifname = "net2",
           .config = of_slot(kSlotB) + "," + Ipam("10.200.0.10/24") + R"(,"ncclConfig":"off")",
           .args = args});
  ASSERT_TRUE(second) << Describe(second.error());
  const auto edits = Cdi(kSlotA)["devices"][0]["containerEdits"];
  EXPECT_EQ(edits["mounts"].size(), 3U) << edits;
  EXPECT_EQ(edits["env"][0], "PCIDEVICE_RAILHEAD_IO_ROCE=" + Bdf(0) + "," + Bdf(1));
}

// kubelet makes a second sandbox while the first one still exists. The second ADD waits for the first
// sandbox, whatever device the daemon names, and does not touch it.
TEST_F(PluginLateTest, ASlotIsInOneSandboxAtATime) {
  const std::string other = MakePod("pod2");
  Call second = OfPod();
  second.container = "c2";
  second.netns = other;
  second.config += R"(,"previousDelTimeoutSeconds":0)";
  {
    StandInDaemon daemon(sysfs_.root(), Bound());
    ASSERT_TRUE(Add(OfPod()));
  }
  kernel_.SetHasProcesses(pod_, true);
  StandInDaemon daemon(sysfs_.root(), FormatBindAnswer(Bindings{{kSlotA, Bdf(0, 1)}, {kSlotB, Bdf(1, 1)}}));
  const auto refused = Add(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(CniCodeOf(refused.error().code), kCniTryAgainLater) << Describe(refused.error());
  const auto checked = Check(OfPod());
  EXPECT_TRUE(checked) << Describe(checked.error());
  // Its namespace died without a DEL: the next sandbox finishes it.
  kernel_.RemoveNamespace(pod_);
  const auto added = Add(second);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(other), (std::vector<std::string>{"rail0", "rail1"}));
  EXPECT_NE(kernel_.state().Find(kHost, "pf0v0"), nullptr) << "the first one's device is on the host";
}

TEST_F(PluginLateTest, WithoutADaemonTryAgainLater) {
  const auto before = World();
  const auto added = Add(OfPod());
  ASSERT_FALSE(added);
  EXPECT_EQ(CniCodeOf(added.error().code), kCniTryAgainLater) << Describe(added.error());
  EXPECT_NE(Describe(added.error()).find("railheadd"), std::string::npos) << Describe(added.error());
  EXPECT_EQ(ChangedSince(before), "");
  EXPECT_TRUE(Del(OfPod())) << "needs none";
}

TEST_F(PluginLateTest, WhatTheDaemonSaysIsPassedOn) {
  for (const std::string& answer :
       {FormatBindAnswer(Fail(ErrorCode::kBusy, "2 slots need a device each, and 1 is free", "wait")),
        std::string("nonsense\n"), std::string("{\"devices\":{}}\n"), std::string()}) {
    StandInDaemon daemon(sysfs_.root(), answer);
    const auto before = World();
    const auto added = Add(OfPod());
    ASSERT_FALSE(added) << answer;
    EXPECT_FALSE(Describe(added.error()).empty());
    EXPECT_EQ(ChangedSince(before), "");
  }
}

}  // namespace
}  // namespace railhead::testing
