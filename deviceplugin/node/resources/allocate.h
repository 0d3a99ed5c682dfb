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
#include <string>
#include <vector>

#include "deviceplugin/node/resources/grant.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/mutex.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::resources {

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
  Mutex records_;  // reading a generation and writing the next one
};

}  // namespace railhead::resources
