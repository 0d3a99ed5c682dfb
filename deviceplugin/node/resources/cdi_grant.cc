#include "deviceplugin/node/resources/cdi_grant.h"

#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"

namespace railhead::resources {
namespace {

std::string KindOf(const ResourceSpec& spec) {
  const std::string prefix = spec.resource.substr(0, spec.resource.find('/'));
  switch (spec.kind) {
    case inventory::FunctionKind::kAccelerator:
      return prefix + "/net-accel";
    case inventory::FunctionKind::kAuxiliary:
      return prefix + "/net-sf";
    case inventory::FunctionKind::kNetwork:
      break;
  }
  return prefix + "/net-pci";
}

}  // namespace

std::string CdiGrantName(const ResourceSpec& spec, const std::string& device_id) {
  return KindOf(spec) + "=" + device_id;
}

// A name that neither the reconciler takes for an attachment's, nor a cleaning sriov-network-device-plugin
// for its own.
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

}  // namespace railhead::resources
