// Allocation records: the result of kubelet's last Allocate of a device.
//
// railheadd writes them durably before it answers, one file per device id. ADD reads them: it has no other
// access to what Allocate decided. They outlive DEL and reboots, since kubelet keeps its checkpoint and does
// not call Allocate again. The next Allocate of the same device replaces its record (generation + 1).
// Threads: thread-safe for different devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead {

struct AllocationRecord {
  std::string resource;
  std::string device_id;
  std::vector<std::string> siblings;  // sorted, device_id included
  std::uint64_t generation = 0;
  NcclConfigPolicy nccl_config = NcclConfigPolicy::kOff;
  DeviceNodeMode device_nodes = DeviceNodeMode::kCdi;

  bool operator==(const AllocationRecord&) const = default;
};

template <>
struct Shape<AllocationRecord> {
  static void List(auto& f) {
    f.Version(1);
    f("resource", &AllocationRecord::resource, kRequiredField);
    f("deviceId", &AllocationRecord::device_id, kRequiredField);
    f("siblings", &AllocationRecord::siblings);
    f("generation", &AllocationRecord::generation);
    f("ncclConfig", &AllocationRecord::nccl_config);
    f("deviceNodes", &AllocationRecord::device_nodes);
  }
};

Result<std::optional<AllocationRecord>> ReadAllocation(const Root& root, const std::string& device_id);
Result<void> WriteAllocation(const Root& root, const AllocationRecord& record);
// Writes all records of one request with one wait for the disk. The devices must differ.
Result<void> WriteAllocations(const Root& root, const std::vector<AllocationRecord>& records);

}  // namespace railhead
