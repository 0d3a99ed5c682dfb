// Allocate's work: what a container is given for the devices that kubelet chose.
//
// Needs no network or API call: the pool is a snapshot; from sysfs only the numbers
// of device nodes are read (grant.h), for pools that give them out, since they change
// when drivers are rebound. Before it answers, one allocation record per device id is on
// disk: kubelet keeps the answer in its checkpoint and never asks again, so that
// later sandboxes, also after a reboot, have only the records.
//
// Of slots (slots.h) only the CDI name can be said: the rest comes with the CDI spec, and the
// device-info file with the binding.
// Threads: Allocator is thread-safe; allocations are done one after the other.
// Errors: kInvalid for ids that are no devices of the pool, kConflict when a device
// has lost what its pool promises (RDMA, vDPA or UIO device, VFIO group), kIo when a record cannot be
// written.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/grant.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

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

}  // namespace railhead
