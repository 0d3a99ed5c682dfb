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
#include "netns/base/files.h"
#include "netns/base/result.h"
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

// "PCIDEVICE_INTEL_COM_SRIOV_NET": upper case, '.' and '/' become '_', '-' stays,
// as in sriov-network-device-plugin.
std::string PcideviceVariable(const std::string& resource);

Result<std::optional<AllocationRecord>> ReadAllocation(const Root& root, const std::string& device_id);
Result<void> WriteAllocation(const Root& root, const AllocationRecord& record);
// Writes all records of one request with one wait for the disk. The devices must differ.
Result<void> WriteAllocations(const Root& root, const std::vector<AllocationRecord>& records);

// kubelet's device checkpoint: which devices it allocated to which pod.
//
// kubelet writes /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint after Allocate and before it
// creates the pod's sandbox. So at ADD the file names the pod's devices, without a daemon or an API server.
// Railhead only reads it. Source: pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go. Before
// Kubernetes 1.20 DeviceIDs was a list instead of lists by NUMA node: both are read. The checksum (a Go hash
// of the Go structure) is not checked. Threads: values.

// The devices of one resource that kubelet allocated to one container.
struct ContainerDevices {
  std::string pod_uid;
  std::string container;
  std::string resource;
  std::vector<std::string> ids;
};

Result<std::vector<ContainerDevices>> ParseCheckpoint(const std::string& text, const std::string& what);
// Empty without a checkpoint: kubelet has allocated no device yet.
Result<std::vector<ContainerDevices>> ReadCheckpoint(const Root& root);

// Whether kubelet has removed the pod's directory, which it does after the whole pod has ended. Only a folder
// that has other pods proves that. If the folder is empty, kubelet may keep its pods elsewhere (--root-dir).
bool KubeletForgot(const Root& root, const std::string& pod_uid);

}  // namespace railhead
