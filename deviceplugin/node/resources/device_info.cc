#include "deviceplugin/node/resources/device_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cni/state/paths.h"
#include "deviceplugin/node/inventory/vdpa_devices.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"

namespace railhead::resources {
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

}  // namespace railhead::resources
