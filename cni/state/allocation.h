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
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

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

template <>
struct Shape<AllocationRecord> {
  static void List(auto& f) {
    f.Version(1);
    f("resource", &AllocationRecord::resource, kRequiredField);
    f("deviceId", &AllocationRecord::device_id, kRequiredField);
    f("siblings", &AllocationRecord::siblings);
    f("generation", &AllocationRecord::generation);
    f("handoff", &AllocationRecord::handoff);
    f("delivery", &AllocationRecord::delivery);
  }
};

// "PCIDEVICE_INTEL_COM_SRIOV_NET": upper case, '.' and '/' become '_', '-' stays,
// as in sriov-network-device-plugin.
std::string PcideviceVariable(const std::string& resource);

Result<std::optional<AllocationRecord>> ReadAllocation(const Root& root, const std::string& device_id);
Result<void> WriteAllocation(const Root& root, const AllocationRecord& record);
// All of one request, of different devices: the disk is waited for once, not for each.
Result<void> WriteAllocations(const Root& root, const std::vector<AllocationRecord>& records);

// kubelet's device checkpoint: which devices it gave to which pod.
//
// kubelet writes /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint after
// Allocate and before the pod's sandbox is made, so at ADD it names the pod's
// devices; no daemon and no API server is asked. Only read, never written.
// Source: pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go; before Kubernetes
// 1.20 DeviceIDs was a list instead of lists by NUMA node: both are read. The
// checksum is kubelet's own business (a Go hash of the Go structure).
// Threads: values.

// What one container was given of one resource.
struct ContainerDevices {
  std::string pod_uid;
  std::string container;
  std::string resource;
  std::vector<std::string> ids;
};

Result<std::vector<ContainerDevices>> ParseCheckpoint(const std::string& text, const std::string& what);
// Empty when there is no checkpoint: kubelet has given no device to anyone yet.
Result<std::vector<ContainerDevices>> ReadCheckpoint(const Root& root);

// Whether kubelet has removed the pod's directory, which it does when all of the pod is gone. Only a
// directory that has other pods proves that: an empty one can be of a kubelet that has its pods elsewhere
// (--root-dir).
bool KubeletForgot(const Root& root, const std::string& pod_uid);

}  // namespace railhead
