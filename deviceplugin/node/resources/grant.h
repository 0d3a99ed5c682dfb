// Grant: what Allocate gives for one device besides its CDI name. That is device nodes, and the device's part
// of the variable PCIDEVICE_..._INFO. The names are those of sriov-network-device-plugin (its packages
// infoprovider and devices, where the README differs from the code).
//
// Resolved from sysfs and /dev of `root` at each call: the numbers of device nodes change when drivers are
// rebound. Threads: thread-safe. Errors: kConflict, with what to do, if the device has lost what its pool
// promises.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::resources {

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

}  // namespace railhead::resources
