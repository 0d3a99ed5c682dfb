#include "deviceplugin/node/resources/allocate.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cni/nccl/nccl_config_files.h"
#include "cni/state/allocation.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/kubelet_checkpoint.h"
#include "cni/state/paths.h"
#include "deviceplugin/node/inventory/subfunctions.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/sys/device_nodes.h"
#include "netns/sys/rdma_sysfs.h"
#include "netns/sys/user_space.h"

namespace railhead::resources {
namespace {

using Json = nlohmann::json;

// The pool's members behind `ids`, which are sorted.
Result<std::vector<const PoolMember*>> FindMembers(const ResourcePool& pool,
                                                   const std::vector<std::string>& ids) {
  const std::string attempt = "allocating devices of " + pool.spec.resource + ": ";
  if (ids.empty()) return Fail(ErrorCode::kInvalid, attempt + "no device ids given");
  if (std::ranges::adjacent_find(ids) != ids.end()) {
    return Fail(ErrorCode::kInvalid, attempt + "the same device id is given twice");
  }
  std::vector<const PoolMember*> members;
  for (const std::string& id : ids) {
    const PoolMember* member = pool.Find(id);
    if (member == nullptr) {
      return Fail(ErrorCode::kInvalid,
                  std::string(attempt).append("'").append(id).append("' is not a device of this resource"),
                  "compare with railheadd --list: was the VF removed, or the configuration changed?");
    }
    members.push_back(member);
  }
  return members;
}

// Devices may share nodes: /dev/vfio/vfio, a VFIO group.
void AddNodes(const Grant& grant, AllocateAnswer* answer) {
  const auto add = [](const auto& node, auto* nodes) {
    if (!Contains(*nodes, node)) nodes->push_back(node);
  };
  for (const DeviceNode& node : grant.nodes) {
    if (node.host_path == node.container_path) {
      add(node.host_path, &answer->device_nodes);
    } else {
      add(node, &answer->renamed_nodes);
    }
  }
}

}  // namespace

Result<AllocateAnswer> Allocator::Allocate(const ResourcePool& pool, std::vector<std::string> ids) {
  std::ranges::sort(ids);
  const auto members = RH_TRY(FindMembers(pool, ids));
  const ResourceSpec& spec = pool.spec;
  AllocateAnswer answer;
  if (spec.late) {
    answer.cdi_devices.reserve(ids.size());
    for (const std::string& id : ids) answer.cdi_devices.push_back(CdiDeviceName(id));
    RH_TRY(WriteRecords(pool, ids));
    return answer;
  }
  Json info;
  bool rdma = false;
  for (const PoolMember* member : members) {
    const Grant grant = RH_TRY(GrantOf(root_, spec, *member));
    info[member->function.id] = grant.info;
    if (spec.cdi_nodes) {
      RH_TRY(WriteCdiGrant(root_, spec, *member, grant));
      answer.cdi_devices.push_back(CdiGrantName(spec, member->function.id));
      continue;
    }
    AddNodes(grant, &answer);
    rdma = rdma || RdmaNodesOf(spec, *member) != RdmaNodes::kNone;
    if (spec.device_nodes == DeviceNodeMode::kCdi)
      answer.cdi_devices.push_back(CdiDeviceName(member->function.id));
  }
  if (rdma && HostHasNode(root_, kRdmaCm)) answer.device_nodes.emplace_back(kRdmaCm);
  if (spec.device_nodes == DeviceNodeMode::kMount && spec.nccl_config == NcclConfigPolicy::kRequired) {
    // One file per device with the same content: a container can have only one of them at this path.
    answer.mounts.push_back({nccl::kNcclConfInContainer, nccl::DeviceNcclConfigPath(root_, ids.front())});
  }
  const std::string variable = PcideviceVariable(spec.resource);
  answer.envs[variable] = Join(ids, ",");
  answer.envs[variable + "_INFO"] = info.dump(-1, ' ', false, Json::error_handler_t::replace);

  for (const PoolMember* member : members) RH_TRY(WriteDeviceInfo(root_, spec, *member));
  RH_TRY(WriteRecords(pool, ids));
  return answer;
}

Result<void> Allocator::WriteRecords(const ResourcePool& pool, const std::vector<std::string>& ids) {
  const std::lock_guard<std::mutex> lock(records_);
  // One generation for the whole request: records of the same siblings and generation belong together.
  std::uint64_t generation = 0;
  for (const std::string& id : ids) {
    const auto record = ReadAllocation(root_, id);
    // The new record needs only the generation of the old one, so a damaged one is ignored.
    if (record && *record) generation = std::max(generation, (*record)->generation);
  }
  std::vector<AllocationRecord> records;
  records.reserve(ids.size());
  for (const std::string& id : ids) {
    AllocationRecord record;
    record.resource = pool.spec.resource;
    record.device_id = id;
    record.siblings = ids;
    record.generation = generation + 1;
    record.nccl_config = pool.spec.nccl_config;
    record.device_nodes = pool.spec.device_nodes;
    records.push_back(std::move(record));
  }
  RH_TRY_WRAP(WriteAllocations(root_, records), "recording the allocation of " + Join(ids, ", "));
  return {};
}

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

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kVersion = "1.1.0";

OrderedJson PciInfo(const inventory::NicFunction& function) {
  OrderedJson json;
  json["type"] = "pci";
  json["version"] = kVersion;
  json["pci"]["pci-address"] = function.address.ToString();  // for a slot the id differs
  if (!function.rdma_device.empty()) json["pci"]["rdma-device"] = function.rdma_device;
  if (function.is_vf) json["pci"]["pf-pci-address"] = function.pf.ToString();
  return json;
}

Result<OrderedJson> VdpaInfo(const Root& root, const inventory::NicFunction& function,
                             inventory::VdpaType type) {
  const auto devices = RH_TRY(inventory::ListVdpaDevices(root));
  const auto found = std::ranges::find_if(devices, [&](const inventory::VdpaDevice& device) {
    return device.parent == function.id && device.type == type;
  });
  if (found == devices.end()) {
    return Fail(ErrorCode::kConflict,
                "describing " + function.id + " for Multus: it has no vDPA device of type " + NameOf(type),
                "compare `vdpa dev show`");
  }
  OrderedJson json;
  json["type"] = "vdpa";
  json["version"] = kVersion;
  json["vdpa"]["parent-device"] = found->name;
  json["vdpa"]["driver"] = NameOf(type);
  if (!found->node.empty()) json["vdpa"]["path"] = found->node;
  json["vdpa"]["pci-address"] = function.id;
  if (function.is_vf) json["vdpa"]["pf-pci-address"] = function.pf.ToString();
  return json;
}

}  // namespace

std::string DeviceInfoPath(const Root& root, const std::string& resource, const std::string& device_id) {
  std::string name = resource + "-" + device_id;
  std::replace(name.begin(), name.end(), '/', '-');
  return paths::DeviceInfos(root) + "/" + name + "-device.json";
}

Result<void> WriteDeviceInfo(const Root& root, const ResourceSpec& spec, const PoolMember& member) {
  const inventory::NicFunction& function = member.function;
  if (function.kind != inventory::FunctionKind::kNetwork) return {};
  const inventory::VdpaType vdpa = member.selector < spec.selectors.size()
                                       ? spec.selectors[member.selector].vdpa
                                       : inventory::VdpaType::kNone;
  const OrderedJson json =
      vdpa == inventory::VdpaType::kNone ? PciInfo(function) : RH_TRY(VdpaInfo(root, function, vdpa));
  const std::string path = DeviceInfoPath(root, spec.resource, function.id);
  const std::string content = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  const auto before = ReadFile(path);
  if (before && *before == content) return {};
  return WriteStateFile(root, path, content);
}

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

std::set<std::string> FindAllocatedUnderOtherNames(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools) {
  std::set<std::string> given;
  const auto checkpoint = ReadCheckpoint(root);
  if (!checkpoint) return given;
  for (const ContainerDevices& container : *checkpoint) {
    if (KubeletForgot(root, container.pod_uid)) continue;
    for (const std::string& id : container.ids) {
      for (const auto& pool : pools) {
        if (pool->spec.resource != container.resource && pool->Find(id) != nullptr) given.insert(id);
      }
    }
  }
  return given;
}

std::map<std::string, std::set<std::string>> FindAllocatedAndLost(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools) {
  std::map<std::string, std::set<std::string>> lost;
  const auto checkpoint = ReadCheckpoint(root);
  if (!checkpoint) return lost;
  for (const ContainerDevices& container : *checkpoint) {
    const bool offered = std::ranges::any_of(
        pools, [&](const auto& pool) { return pool->spec.resource == container.resource; });
    if (!offered || KubeletForgot(root, container.pod_uid)) continue;
    for (const std::string& id : container.ids) {
      const auto has = [&](const auto& pool) { return pool->Find(id) != nullptr; };
      if (std::ranges::none_of(pools, has)) lost[container.resource].insert(id);
    }
  }
  return lost;
}

namespace {

constexpr std::string_view kRecordSuffix = ".json";

Result<void> RestoreOne(const Root& root, const ResourceSpec& spec, const PoolMember& member) {
  const auto record = ReadAllocation(root, member.function.id);
  if (!record || !*record || (*record)->resource != spec.resource) return {};
  auto described = WriteDeviceInfo(root, spec, member);
  if (!spec.cdi_nodes) return described;
  const Grant grant = RH_TRY(GrantOf(root, spec, member));
  RH_TRY(WriteCdiGrant(root, spec, member, grant));
  return described;
}

}  // namespace

Result<void> RestoreAllocated(const Root& root,
                              const std::vector<std::shared_ptr<const ResourcePool>>& pools) {
  const auto records = RH_TRY(ListDirectory(paths::Allocations(root)));
  if (!records) return {};
  Result<void> first_error;
  for (const std::string& file : *records) {
    if (file.size() <= kRecordSuffix.size()) continue;
    const std::string id = file.substr(0, file.size() - kRecordSuffix.size());
    for (const auto& pool : pools) {
      const PoolMember* member = pool->Find(id);
      if (member == nullptr) continue;
      auto restored = RestoreOne(root, pool->spec, *member);
      if (!restored && first_error) first_error = std::move(restored);
    }
  }
  return first_error;
}

}  // namespace railhead::resources
