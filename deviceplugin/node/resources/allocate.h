// Allocate's work: what a container is given for the devices that kubelet chose.
//
// Needs no network or API call: the pool is a snapshot; from sysfs only the numbers
// of device nodes are read, for pools that give them out, since they change
// when drivers are rebound. Before it answers, one allocation record per device id is on
// disk: kubelet keeps the answer in its checkpoint and never asks again, so that
// later sandboxes, also after a reboot, have only the records.
//
// Of slots only the CDI name can be said: the rest comes with the CDI spec, and the
// device-info file with the binding.
// Threads: Allocator is thread-safe; allocations are done one after the other.
// Errors: kInvalid for ids that are no devices of the pool, kConflict when a device
// has lost what its pool promises (RDMA, vDPA or UIO device, VFIO group), kIo when a record cannot be
// written.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::resources {

// Grant: what Allocate gives for one device besides its CDI name: device nodes, and its
// part of the variable PCIDEVICE_..._INFO, by the names of sriov-network-device-plugin
// (its packages infoprovider and devices, where the README differs from the code).
//
// Resolved from sysfs and /dev of `root` at each call: the numbers of device nodes change
// when drivers are rebound.
// Threads: thread-safe. Errors: kConflict, with what to do, when the device has lost what
// its pool promises.

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
std::set<std::string> FindAllocatedUnderOtherNames(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools);

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

// Device-info files: what Multus passes on to CNI plugins about an allocated device.
// Source: k8snetworkplumbingwg/device-info-spec 1.1.0, types pci and vdpa.
//
// Written at Allocate, one per resource and device, mode 0444, below /var/run, which is
// empty after a reboot: restore.h writes what is missing then. Files of devices with an
// allocation record are never removed: a sandbox can be made again without another
// Allocate.
// Threads: thread-safe. Errors: kIo.

std::string DeviceInfoPath(const Root& root, const std::string& resource, const std::string& device_id);

// Nothing for accelerators and subfunctions: the specification has no type for them.
Result<void> WriteDeviceInfo(const Root& root, const ResourceSpec& spec, const PoolMember& member);

struct AllocateAnswer {
  struct Mount {
    std::string container_path;
    std::string host_path;  // read-only
    bool operator==(const Mount&) const = default;
  };
  std::map<std::string, std::string> envs;
  std::vector<Mount> mounts;
  std::vector<std::string> device_nodes;  // the same path inside and outside; "rw"
  std::vector<DeviceNode> renamed_nodes;  // another path inside than outside; "rw"
  std::vector<std::string> cdi_devices;   // fully qualified names
};

class Allocator {
 public:
  explicit Allocator(Root root) : root_(std::move(root)) {}

  // `ids` in any order, as kubelet sends them; what is answered is sorted.
  Result<AllocateAnswer> Allocate(const ResourcePool& pool, std::vector<std::string> ids);

 private:
  Result<void> WriteRecords(const ResourcePool& pool, const std::vector<std::string>& ids);

  Root root_;
  std::mutex records_;  // reading a generation and writing the next one
};

// CDI specs of what Allocate gives, for resources of a config.json with --use-cdi.
//
// The names are those of sriov-network-device-plugin: kind PREFIX/net-pci, PREFIX/net-accel or
// PREFIX/net-sf, and the device id. Unlike there, a spec is one allocated device's, written
// before Allocate is answered, and again when the daemon starts (restore.h): device nodes have
// other numbers after a reboot, and kubelet does not allocate again.
// Threads: thread-safe. Errors: kIo; kConflict of GrantOf().

// "intel.com/net-pci=0000:03:02.0"
std::string CdiGrantName(const ResourceSpec& spec, const std::string& device_id);
std::string CdiGrantPath(const Root& root, const std::string& device_id);

Result<void> WriteCdiGrant(const Root& root, const ResourceSpec& spec, const PoolMember& member,
                           const Grant& grant);

}  // namespace railhead::resources
