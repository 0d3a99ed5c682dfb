#include "deviceplugin/node/resources/grant.h"

#include <algorithm>
#include <optional>

#include "deviceplugin/node/inventory/vdpa_devices.h"
#include "deviceplugin/node/resources/selector.h"
#include "netns/base/files.h"
#include "netns/sys/device_nodes.h"
#include "netns/sys/rdma_sysfs.h"
#include "netns/sys/user_space.h"

namespace railhead::resources {
namespace {

constexpr const char* kVhostNet = "/dev/vhost-net";
constexpr const char* kTun = "/dev/net/tun";

const Selector* SelectorOf(const ResourceSpec& spec, const PoolMember& member) {
  return member.selector < spec.selectors.size() ? &spec.selectors[member.selector] : nullptr;
}

void AddNode(const std::string& path, Grant* grant) {
  grant->nodes.push_back({path, path});
}

Result<void> AddRdma(const Root& root, const inventory::NicFunction& function, RdmaNodes wanted,
                     Grant* grant) {
  // Subfunctions have no PCI address of their own: their nodes are found by the RDMA device.
  const auto nodes =
      RH_TRY(function.kind == inventory::FunctionKind::kNetwork ? CharDevicesOf(root, function.address)
                                                                : CharDevicesOf(root, function.rdma_device));
  if (!nodes.uverbs) {
    return Fail(ErrorCode::kConflict,
                "the RDMA device of " + function.id + " has no uverbs device node in sysfs",
                "check that ib_uverbs is loaded, that the device is bound to its driver, and that "
                "`rdma system` says netns shared: in exclusive mode use \"deviceNodes\": \"cdi\"");
  }
  auto& info = grant->info["rdma"];
  const auto add = [&](const char* key, const std::optional<std::string>& name, bool give) {
    if (!name) return;
    info[key] = "/dev/infiniband/" + *name;
    if (give) AddNode(info[key], grant);
  };
  const bool all = wanted == RdmaNodes::kAll;
  add("uverbs", nodes.uverbs, true);
  add("umad", nodes.umad, all);
  add("issm", nodes.issm, all);
  if (HostHasNode(root, kRdmaCm)) info["rdma_cm"] = kRdmaCm;
  if (!function.rdma_device.empty()) info["rdma_dev"] = function.rdma_device;
  return {};
}

Result<std::vector<UserSpaceNode>> NodesOf(const Root& root, const inventory::NicFunction& function,
                                           UserSpace kind) {
  auto nodes = RH_TRY(UserSpaceNodesOf(root, function.id, kind));
  if (!nodes.empty()) return nodes;
  if (kind == UserSpace::kVfio) {
    return Fail(ErrorCode::kConflict,
                "looking for the VFIO group of " + function.id + ": it has no IOMMU group",
                "check that the IOMMU is on (kernel command line: intel_iommu=on) and that the device is "
                "still bound to " +
                    function.driver);
  }
  return Fail(ErrorCode::kConflict, "looking for the UIO device of " + function.id + ": it has none",
              "check that the device is still bound to " + function.driver);
}

Result<void> AddUserSpace(const Root& root, const inventory::NicFunction& function, UserSpace kind,
                          Grant* grant) {
  if (kind == UserSpace::kNone) return {};
  const auto nodes = RH_TRY(NodesOf(root, function, kind));
  for (const UserSpaceNode& node : nodes) grant->nodes.push_back({node.host, node.inside});
  if (kind == UserSpace::kVfio) {
    grant->info["vfio"] = {{"mount", kVfioControl}, {"dev-mount", nodes.back().inside}};
  } else {
    grant->info["uio"]["mount"] = nodes.back().inside;
  }
  return {};
}

Result<void> AddVdpa(const Root& root, const inventory::NicFunction& function, inventory::VdpaType wanted,
                     Grant* grant) {
  const auto devices = RH_TRY(inventory::ListVdpaDevices(root));
  const auto found = std::ranges::find_if(devices, [&](const inventory::VdpaDevice& device) {
    return device.parent == function.id && device.type == wanted;
  });
  if (found == devices.end() || (wanted == inventory::VdpaType::kVhost && found->node.empty())) {
    return Fail(ErrorCode::kConflict,
                "looking for the vDPA device of " + function.id + ": it has none of type " + NameOf(wanted),
                "compare `vdpa dev show` and the driver links in /sys/bus/vdpa/devices");
  }
  auto& info = grant->info["vdpa"];
  if (wanted != inventory::VdpaType::kVhost) return {};
  AddNode(found->node, grant);
  info["mount"] = found->node;
  return {};
}

// A node without these modules gets none, as with sriov-network-device-plugin.
void AddVhostNet(const Root& root, Grant* grant) {
  if (!HostHasNode(root, kVhostNet) || !HostHasNode(root, kTun)) return;
  AddNode(kVhostNet, grant);
  AddNode(kTun, grant);
  grant->info["vhost"] = {{"net-mount", kVhostNet}, {"tun-mount", kTun}};
}

void AddExtra(const ResourceSpec& spec, const inventory::NicFunction& function, Grant* grant) {
  if (spec.additional_info.empty()) return;
  auto& info = grant->info["extra"];
  for (const std::string& key : {std::string("*"), function.address.ToString(), function.id}) {
    const auto extra = spec.additional_info.find(key);
    if (extra == spec.additional_info.end()) continue;
    for (const auto& [name, value] : extra->second) info[name] = value;
  }
}

}  // namespace

bool HostHasNode(const Root& root, const std::string& path) {
  return Exists(root.Path("/sys/class/misc/") + path.substr(path.rfind('/') + 1)) || Exists(root.Path(path));
}

RdmaNodes RdmaNodesOf(const ResourceSpec& spec, const PoolMember& member) {
  if (spec.rdma_nodes != RdmaNodes::kAll) return spec.rdma_nodes;
  const Selector* selector = SelectorOf(spec, member);
  return selector != nullptr && selector->is_rdma.value_or(false) ? RdmaNodes::kAll : RdmaNodes::kNone;
}

Result<Grant> GrantOf(const Root& root, const ResourceSpec& spec, const PoolMember& member) {
  const inventory::NicFunction& function = member.function;
  const Selector* selector = SelectorOf(spec, member);
  Grant grant;
  grant.info["generic"]["deviceID"] = function.id;
  const UserSpace user_space =
      function.kind == inventory::FunctionKind::kAuxiliary ? UserSpace::kNone : UserSpaceOf(function.driver);
  RH_TRY(AddUserSpace(root, function, user_space, &grant));
  if (const RdmaNodes wanted = RdmaNodesOf(spec, member); wanted != RdmaNodes::kNone) {
    RH_TRY(AddRdma(root, function, wanted, &grant));
  }
  if (selector != nullptr && selector->vdpa != inventory::VdpaType::kNone) {
    RH_TRY(AddVdpa(root, function, selector->vdpa, &grant));
  }
  if (selector != nullptr && selector->need_vhost_net) AddVhostNet(root, &grant);
  AddExtra(spec, function, &grant);
  return grant;
}

}  // namespace railhead::resources
