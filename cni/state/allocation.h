// Allocation records: what kubelet's last Allocate said of a device.
//
// Written durably by railheadd before it answers, one file per device id; read
// by ADD, which kubelet's Allocate otherwise tells nothing. They outlive DEL and
// reboots, since kubelet keeps its checkpoint and does not ask again, and are
// replaced by the next Allocate of the same device (generation + 1).
// Threads: thread-safe for different devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

struct AllocationRecord {
  std::string resource;
  std::string device_id;
  std::vector<std::string> siblings;  // sorted, device_id included
  std::uint64_t generation = 0;
  HandoffPolicy handoff = HandoffPolicy::kOff;
  Delivery delivery = Delivery::kCdi;

  bool operator==(const AllocationRecord&) const = default;
};

// "PCIDEVICE_INTEL_COM_SRIOV_NET": upper case, '.' and '/' become '_', '-' stays,
// as in sriov-network-device-plugin.
std::string PcideviceVariable(const std::string& resource);

Result<std::optional<AllocationRecord>> ReadAllocation(const Root& root, const std::string& device_id);
Result<void> WriteAllocation(const Root& root, const AllocationRecord& record);
// All of one request, of different devices: the disk is waited for once, not for each.
Result<void> WriteAllocations(const Root& root, const std::vector<AllocationRecord>& records);

}  // namespace railhead
