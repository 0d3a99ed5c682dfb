// A node with two rails, a GPU beside each, and the records that railheadd and the plugins write about its
// pods. For tests of commands that combine these records.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "ipam/store/store.h"
#include "netns/base/node.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/support/process.h"

namespace railhead::testing {

inline constexpr const char* kContainerA = "aaaa1111";
inline constexpr const char* kContainerB = "aaaa2222";

class PodsNode : public TwoRails {
 protected:
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
    sysfs_.Write("/etc/railhead/fabric.json", Fabric());
    for (const char* pf : {"pf0", "pf1"})
      sysfs_.Write("/sys/class/net/" + std::string(pf) + "/carrier", "1\n");
    sysfs_.Write("/sys/class/net/pf0/address", "0c:42:a1:00:00:01\n");
    WriteLldp();
    WriteHealth({});
  }

  static std::string Fabric() {
    return R"({"version": 1, "nodes": {"gpu-001": 0, "gpu-002": 1}, "rails": [
      {"name": "rail0", "pf": "pf0", "vlan": 100, "subnet": "10.100.0.0/24", "gateway": "10.100.0.62", "nodeBlock": 26},
      {"name": "rail1", "pf": "pf1", "subnet": "10.101.0.0/24", "nodeBlock": 26}]})";
  }

  void WriteLldp() {
    lldp::RailNeighbor rail{
        "rail0", kPf0, "pf0", true, {}, lldp::HeardNeighbor{}, {}, lldp::Cabling::kUnchecked, ""};
    rail.neighbor->neighbor.chassis = "02:00:00:00:00:99";
    rail.neighbor->neighbor.port = "Ethernet1/3";
    rail.neighbor->neighbor.system_name = "leaf1";
    rail.neighbor->heard = std::chrono::system_clock::now();
    ASSERT_TRUE(lldp::kLldpFile.Write(root_, {"gpu-001", rail.neighbor->heard, {rail}}));
  }

  // All devices are healthy but for these.
  void WriteHealth(const std::vector<std::string>& unhealthy) {
    const auto now = std::chrono::system_clock::now();
    health::HealthState state;
    const auto inventory = Discover();
    for (const inventory::NicFunction& function : inventory->functions) {
      health::DeviceHealth device{
          function.id, function.is_vf, function.pf.ToString(), function.pf_name, true, now, {}};
      if (std::ranges::find(unhealthy, function.id) != unhealthy.end()) {
        device.healthy = false;
        device.reasons = {{health::HealthRule::kLink, function.id, "", "it has no carrier", now}};
      }
      state.devices.push_back(device);
    }
    ASSERT_TRUE(health::kHealthFile.Write(root_, state));
  }

  struct Nic {
    std::string device;
    std::string pf;
    int vf = 0;
    std::string rail;
    std::string address;
  };

  JournalEntry Entry(const std::string& container, const std::string& pod, const Nic& nic) {
    JournalEntry entry;
    entry.key = {"rails", container, "net1"};
    entry.boot_id = *BootId(root_);
    entry.phase = Phase::kDone;
    entry.netns = "/run/netns/" + container;
    entry.since = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()) - 3600;
    entry.cni_args = {{"K8S_POD_NAMESPACE", "train"}, {"K8S_POD_NAME", pod}, {"K8S_POD_UID", "uid-" + pod}};
    AttachedDevice link;
    link.device = nic.device;
    link.pf = nic.pf;
    link.vf = nic.vf;
    link.rail = nic.rail;
    link.pod_name = "net1";
    link.before.name = "host" + std::to_string(nic.vf);
    link.before.mac = *MacAddress::Parse("0c:42:a1:00:01:0" + std::to_string(nic.vf));
    link.rdma.device = "mlx5_7" + std::to_string(nic.vf);
    link.addressing.addresses = {*IpPrefix::Parse(nic.address + "/24")};
    entry.devices = {link};
    return entry;
  }
  // The host no longer sees the device, as after ADD.
  void Attach(const JournalEntry& entry) {
    const auto written = Journal(root_).Write(entry);
    ASSERT_TRUE(written) << Describe(written.error());
    for (const AttachedDevice& link : entry.devices) sysfs_.MoveToPod(link.device);
  }
  void AttachTwoPods() {
    Attach(Entry(kContainerA, "worker-0", {vfs0_[1], kPf0, 1, "rail0", "10.100.0.7"}));
    Attach(Entry(kContainerB, "worker-1", {vfs1_[2], kPf1, 2, "rail1", "10.101.0.7"}));
  }

  // An address of rail0's range, for a container.
  std::string Allocate(const std::string& container) {
    auto store = ipam::AddressStore::Open(root_);
    EXPECT_TRUE(store) << Describe(store.error());
    const ipam::AddressPool pool{"10.100.0.0/24",
                                 *ipam::RangeSet::Make({*IpPrefix::Parse("10.100.0.0/24"), {}, {}, {}}),
                                 std::chrono::hours(1)};
    const auto given = store->Allocate({"rails", container, "net1"}, pool);
    EXPECT_TRUE(given) << Describe(given.error());
    return given ? given->address.ToString() : "";
  }
  void Release(const std::string& container) {
    auto store = ipam::AddressStore::Open(root_);
    ASSERT_TRUE(store) << Describe(store.error());
    ASSERT_TRUE(store->Release({"rails", container, "net1"}));
  }

  // kubelet's checkpoint: a device of a pod.
  void WriteCheckpoint(const std::string& uid, const std::string& device) {
    sysfs_.Write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
                 R"({"Data": {"PodDeviceEntries": [{"PodUID": ")" + uid +
                     R"(", "ContainerName": "c", "ResourceName": "railhead.io/roce", "DeviceIDs": {"0": [")" +
                     device + R"("]}, "AllocResp": ""}], "RegisteredDevices": {}}, "Checksum": 1})");
  }

  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }
};

}  // namespace railhead::testing
