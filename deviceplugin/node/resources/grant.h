// Grant: what Allocate gives for one device besides its CDI name: device nodes, and its
// part of the variable PCIDEVICE_..._INFO, by the names of sriov-network-device-plugin
// (its packages infoprovider and devices, where the README differs from the code).
//
// Resolved from sysfs and /dev of `root` at each call: the numbers of device nodes change
// when drivers are rebound.
// Threads: thread-safe. Errors: kConflict, with what to do, when the device has lost what
// its pool promises.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

inline constexpr const char* kRdmaCm = "/dev/infiniband/rdma_cm";

struct DeviceNode {
  std::string host_path;
  std::string container_path;
  bool operator==(const DeviceNode&) const = default;
};

struct Grant {
  // Without rdma_cm, which all devices share.
  std::vector<DeviceNode> nodes;
  // Provider -> key -> value: generic, rdma, vfio, uio, vdpa, vhost, extra.
  std::map<std::string, std::map<std::string, std::string>> info;
};

// Whether the host has one of the nodes that all devices share (rdma_cm, vhost-net, tun): asked of
// sysfs, since a container has no /dev of the host's.
bool HostHasNode(const Root& root, const std::string& path);

Result<Grant> GrantOf(const Root& root, const ResourceSpec& spec, const PoolMember& member);

// Which RDMA nodes the member gets: the spec's, if the selector that took it asks for any.
RdmaNodes RdmaNodesOf(const ResourceSpec& spec, const PoolMember& member);

// Devices that a pod has under the name of another resource than the one that they are in now.
//
// A changed configuration can move a device from one resource to another, and kubelet keeps its
// books by resource: it would give the device out once more. It is told as unhealthy instead for
// as long as the pod is there.
// Source: kubelet's checkpoint (cni/state/allocation.h), which keeps pods that have ended until its next
// allocation; a pod's directory goes with the pod.
// Threads: thread-safe. Errors: none; without a checkpoint that can be read nothing is known.

// Ids of devices, of slots none.
std::set<std::string> GivenUnderOtherNames(const Root& root,
                                           const std::vector<std::shared_ptr<const ResourcePool>>& pools);

// What Allocate wrote into directories that a reboot empties, made again.
//
// kubelet keeps its checkpoint over a reboot and does not allocate again; the allocation
// records are kept too. Before kubelet is served, and
// after every look at the node (VFs may be made after railheadd has started, and drivers bound
// again), every device with a record of its pool gets its
// device-info file and, with --use-cdi, its CDI spec again where they are missing or
// outdated.
// Threads: thread-safe. Errors: the first one, after all have been tried. Damaged records are
// passed over: they are the CNI plugin's to report, and the next Allocate replaces them.

Result<void> RestoreAllocated(const Root& root,
                              const std::vector<std::shared_ptr<const ResourcePool>>& pools);

}  // namespace railhead
