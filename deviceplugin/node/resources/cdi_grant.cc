#include "deviceplugin/node/resources/cdi_grant.h"

#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"

namespace railhead {
namespace {

std::string KindOf(const ResourceSpec& spec) {
  const std::string prefix = spec.resource.substr(0, spec.resource.find('/'));
  switch (spec.kind) {
    case FunctionKind::kAccelerator:
      return prefix + "/net-accel";
    case FunctionKind::kAuxiliary:
      return prefix + "/net-sf";
    case FunctionKind::kNetwork:
      break;
  }
  return prefix + "/net-pci";
}

}  // namespace

std::string CdiGrantName(const ResourceSpec& spec, const std::string& device_id) {
  return KindOf(spec) + "=" + device_id;
}

// No name that the reconciler takes for one of an attachment, or that a cleaning
// sriov-network-device-plugin takes for its own.
std::string CdiGrantPath(const Root& root, const std::string& device_id) {
  return paths::CdiDirectory(root) + "/railheadd-" + device_id + ".json";
}

Result<void> WriteCdiGrant(const Root& root, const ResourceSpec& spec, const PoolMember& member,
                           const Grant& grant) {
  CdiDevice device;
  device.name = member.function.id;
  for (const DeviceNode& node : grant.nodes) {
    if (node.host_path == node.container_path) {
      device.device_nodes.push_back(node.host_path);
    } else {
      device.renamed_nodes.push_back({node.host_path, node.container_path});
    }
  }
  const bool rdma = RdmaNodesOf(spec, member) != RdmaNodes::kNone;
  if (rdma && HostHasNode(root, kRdmaCm)) device.device_nodes.emplace_back(kRdmaCm);
  return WriteCdiSpec(root, CdiGrantPath(root, device.name), KindOf(spec), device);
}

}  // namespace railhead
