// Allocate's work: what a container is given for the devices that kubelet chose.
//
// Needs no network or API call: the pool is a snapshot. From sysfs it reads only the numbers of device nodes,
// for pools that give them out, since these numbers change when drivers are rebound. Before it answers, one
// allocation record per device id is on disk. The answer stays in kubelet's checkpoint, and kubelet never
// asks again. So later sandboxes, also after a reboot, have only the records.
//
// For slots only the CDI name is known. The rest comes with the CDI spec, and the device-info file with the
// binding.
//
// Threads: Allocator is thread-safe; allocations are done one after the other. Errors: kInvalid for ids that
// are not devices of the pool. A device that has lost what its pool promises (RDMA, vDPA or UIO device, VFIO
// group) gives kConflict. A record that cannot be written gives kIo.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::resources {

// Grant: what Allocate gives for one device besides its CDI name. That is device nodes, and the device's part
// of the variable PCIDEVICE_..._INFO. The names are those of sriov-network-device-plugin (its packages
// infoprovider and devices, where the README differs from the code).
//
// Resolved from sysfs and /dev of `root` at each call: the numbers of device nodes change when drivers are
// rebound. Threads: thread-safe. Errors: kConflict, with what to do, if the device has lost what its pool
// promises.

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

// Whether the host has one of the nodes that all devices share (rdma_cm, vhost-net, tun). Also reads sysfs,
// since a container does not have the host's /dev.
bool HostHasNode(const Root& root, const std::string& path);

Result<Grant> GrantOf(const Root& root, const ResourceSpec& spec, const PoolMember& member);

// Which RDMA nodes the member gets: the spec's, if the selector that took it asks for any.
RdmaNodes RdmaNodesOf(const ResourceSpec& spec, const PoolMember& member);

// Devices allocated to a pod under a different resource name than their current one.
//
// A changed configuration can move a device from one resource to another. Since kubelet counts by resource,
// it would allocate the device again. So the device is reported unhealthy as long as the pod is there.
//
// Source: kubelet's checkpoint (cni/state/kubelet_checkpoint.h), which keeps ended pods until its next
// allocation. A pod's directory goes with the pod. Threads: thread-safe. Errors: none; without a readable
// checkpoint nothing is known.

// Ids of devices, never of slots.
std::set<std::string> FindAllocatedUnderOtherNames(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools);

// Devices and slots that kubelet has allocated to a pod, and that are in none of `pools`, by resource: a VF
// was removed, a PF unplugged, a driver unbound.
//
// kubelet keeps the allocation until the pod ends, and takes its capacity from ListAndWatch. So they stay in
// the list, unhealthy. Resources without a pool are left out: they were withdrawn. Source, threads and errors
// as above.
std::map<std::string, std::set<std::string>> FindAllocatedAndLost(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools);

// Writes again what Allocate wrote into directories that a reboot empties.
//
// The checkpoint survives a reboot, so kubelet does not allocate again. The allocation records survive, too.
// This runs before kubelet is served, and after every discovery: VFs may be made, and drivers bound, after
// railheadd has started. Every device with a record of its pool gets its device-info file again if that is
// missing or outdated. With --use-cdi it gets its CDI spec again, too.
//
// Threads: thread-safe. Errors: the first one, after all have been tried. Damaged records are skipped: the
// CNI plugin reports them, and the next Allocate replaces them.

Result<void> RestoreAllocated(const Root& root,
                              const std::vector<std::shared_ptr<const ResourcePool>>& pools);

// Device-info files: what Multus passes on to CNI plugins about an allocated device.
// Source: k8snetworkplumbingwg/device-info-spec 1.1.0, types pci and vdpa.
//
// Written at Allocate, one per resource and device, mode 0444, below /var/run. A reboot empties that, and
// RestoreAllocated() writes missing files. Files of devices with an allocation record are never removed: a
// sandbox can be made again without another Allocate. Threads: thread-safe. Errors: kIo.

std::string DeviceInfoPath(const Root& root, const std::string& resource, const std::string& device_id);

// Writes nothing for accelerators and subfunctions: the specification has no type for them.
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

  // `ids` in any order, as kubelet sends them; the answer is sorted.
  Result<AllocateAnswer> Allocate(const ResourcePool& pool, std::vector<std::string> ids);

 private:
  Result<void> WriteRecords(const ResourcePool& pool, const std::vector<std::string>& ids);

  Root root_;
  std::mutex records_;  // reading a generation and writing the next one
};

// CDI specs of what Allocate gives, for resources of a config.json with --use-cdi.
//
// The names are those of sriov-network-device-plugin: kind PREFIX/net-pci, PREFIX/net-accel or PREFIX/net-sf,
// and the device id. Unlike there, a spec is for one allocated device. It is written before Allocate is
// answered, and again when the daemon starts (RestoreAllocated()). After a reboot device nodes have other
// numbers, and kubelet does not allocate again. Threads: thread-safe. Errors: kIo; kConflict of GrantOf().

// "intel.com/net-pci=0000:03:02.0"
std::string CdiGrantName(const ResourceSpec& spec, const std::string& device_id);
std::string CdiGrantPath(const Root& root, const std::string& device_id);

Result<void> WriteCdiGrant(const Root& root, const ResourceSpec& spec, const PoolMember& member,
                           const Grant& grant);

}  // namespace railhead::resources
