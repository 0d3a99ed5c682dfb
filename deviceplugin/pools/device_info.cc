#include "deviceplugin/pools/device_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cni/state/allocation.h"
#include "cni/state/paths.h"
#include "deviceplugin/pools/vdpa.h"
#include "netns/base/files.h"

namespace railhead {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVersion = "1.1.0";
constexpr std::string_view kRecordSuffix = ".json";

Json PciInfo(const NicFunction& function) {
  Json json;
  json["type"] = "pci";
  json["version"] = kVersion;
  json["pci"]["pci-address"] = function.id;
  if (!function.rdma_device.empty()) json["pci"]["rdma-device"] = function.rdma_device;
  if (function.is_vf) json["pci"]["pf-pci-address"] = function.pf.ToString();
  return json;
}

Result<Json> VdpaInfo(const Root& root, const NicFunction& function, VdpaType type) {
  const auto devices = RH_TRY(ListVdpaDevices(root));
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const VdpaDevice& device) {
    return device.parent == function.id && device.type == type;
  });
  if (found == devices.end()) {
    return Fail(ErrorCode::kConflict,
                "describing " + function.id + " for Multus: it has no vDPA device of type " + NameOf(type),
                "compare `vdpa dev show`");
  }
  Json json;
  json["type"] = "vdpa";
  json["version"] = kVersion;
  json["vdpa"]["parent-device"] = found->name;
  json["vdpa"]["driver"] = NameOf(type);
  if (!found->node.empty()) json["vdpa"]["path"] = found->node;
  json["vdpa"]["pci-address"] = function.id;
  if (function.is_vf) json["vdpa"]["pf-pci-address"] = function.pf.ToString();
  return json;
}

Result<void> RestoreOne(const Root& root, const ResourcePool& pool, const PoolMember& member) {
  const auto record = ReadAllocation(root, member.function.id);
  // A damaged record is the CNI plugin's to report, and the next Allocate replaces it.
  if (!record || !*record || (*record)->resource != pool.spec.resource) return {};
  return WriteDeviceInfo(root, pool.spec, member);
}

}  // namespace

std::string DeviceInfoPath(const Root& root, const std::string& resource, const std::string& device_id) {
  std::string name = resource + "-" + device_id;
  std::replace(name.begin(), name.end(), '/', '-');
  return root.Path("/var/run/k8s.cni.cncf.io/devinfo/dp/") + name + "-device.json";
}

Result<void> WriteDeviceInfo(const Root& root, const ResourceSpec& spec, const PoolMember& member) {
  const NicFunction& function = member.function;
  if (function.kind != FunctionKind::kNetwork) return {};
  const VdpaType vdpa =
      member.selector < spec.selectors.size() ? spec.selectors[member.selector].vdpa : VdpaType::kNone;
  const Json json = vdpa == VdpaType::kNone ? PciInfo(function) : RH_TRY(VdpaInfo(root, function, vdpa));
  const std::string path = DeviceInfoPath(root, spec.resource, function.id);
  const std::string content = json.dump();
  const auto before = ReadFile(path);
  if (before && *before == content) return {};
  RH_TRY(MakeDirectories(path.substr(0, path.rfind('/'))));
  return WriteAtomic(path, content, Sync::kVolatile, 0444);
}

Result<void> RestoreDeviceInfo(const Root& root,
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
      auto restored = RestoreOne(root, *pool, *member);
      if (!restored && first_error) first_error = std::move(restored);
    }
  }
  return first_error;
}

}  // namespace railhead
