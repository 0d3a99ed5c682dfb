#include "deviceplugin/node/resources/sriovdp_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "deviceplugin/node/inventory/subfunctions.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::resources {
namespace {

std::vector<Selector> ReadSelectors(JsonReader* resource, const std::string& key,
                                    inventory::FunctionKind kind) {
  std::vector<Selector> selectors;
  const nlohmann::json* raw = resource->Raw(key);
  if (raw == nullptr) {
    resource->Fail(key, "is missing", "select devices; {} selects every device that may be given out");
  } else if (raw->is_array()) {
    for (JsonReader& reader : resource->Objects(key)) selectors.push_back(ReadSelector(&reader, kind));
    if (selectors.empty()) resource->Fail(key, "is an empty list and selects nothing");
  } else if (auto reader = resource->Object(key); reader) {
    selectors.push_back(ReadSelector(&*reader, kind));
  }
  return selectors;
}

void ReadAdditionalInfo(JsonReader* resource, const std::string& key, ResourceSpec* spec) {
  auto info = resource->Object(key);
  if (!info) return;
  for (const std::string& device : info->Keys()) {
    const auto address = PciAddress::Parse(device);
    const bool auxiliary =
        spec->kind == inventory::FunctionKind::kAuxiliary && !inventory::AuxTypeOf(device).empty();
    if (device != "*" && !address && !auxiliary) {
      info->Fail(device, "is neither a PCI address nor \"*\"");
    }
    auto values = info->Object(device);
    if (!values) continue;
    auto& target = spec->additional_info[address ? address->ToString() : device];
    for (const std::string& name : values->Keys()) target[name] = values->String(name).value_or("");
    values->Close();
  }
  info->Close();
}

inventory::FunctionKind ReadKind(JsonReader* reader, const std::string& key) {
  const std::string text = reader->String(key).value_or("netDevice");
  const std::string type = ToLower(text);
  if (type == "accelerator") return inventory::FunctionKind::kAccelerator;
  if (type == "auxnetdevice") return inventory::FunctionKind::kAuxiliary;
  if (type != "netdevice" && !type.empty()) {
    reader->Fail(key, "'" + text + "' is not a type of device", "use netDevice, accelerator or auxNetDevice");
  }
  return inventory::FunctionKind::kNetwork;
}

ResourceSpec ReadResource(JsonReader* reader, const std::string& default_prefix) {
  const AnyCase key(reader);
  ResourceSpec spec;
  const std::string name = reader->RequiredString(key("resourceName"));
  const std::string prefix = reader->String(key("resourcePrefix")).value_or(default_prefix);
  spec.resource = (prefix.empty() ? default_prefix : prefix) + "/" + name;
  if (const auto valid = CheckResourceName(spec.resource); !valid && reader->Has(key("resourceName"))) {
    reader->Fail(key("resourceName"), valid.error().message, valid.error().hint);
  }
  spec.kind = ReadKind(reader, key("deviceType"));
  spec.exclude_topology = reader->Bool(key("excludeTopology")).value_or(false);
  ReadAdditionalInfo(reader, key("additionalInfo"), &spec);
  spec.selectors = ReadSelectors(reader, key("selectors"), spec.kind);
  const bool rdma = std::ranges::any_of(
      spec.selectors, [](const Selector& selector) { return selector.is_rdma.value_or(false); });
  if (rdma) spec.rdma_nodes = RdmaNodes::kAll;
  // Where that program keeps what it has read of "selectors" (ResourceConfig in its pkg/types/types.go). The
  // SR-IOV operator writes its structure as it is, with null here.
  for (const char* const parsed : {"SelectorObjs", "SelectorObj"}) reader->Ignore(key(parsed));
  reader->Close();
  return spec;
}

}  // namespace

Result<std::vector<ResourceSpec>> ParseSriovdpConfig(std::string_view text, const std::string& what,
                                                     const std::string& default_prefix,
                                                     std::vector<Error>* all) {
  const JsonDocument document = RH_TRY(JsonDocument::Parse(text, what));
  JsonReader root = document.Root();
  const AnyCase key(&root);
  std::vector<ResourceSpec> specs;
  std::set<std::string> names;
  for (JsonReader& resource : root.Objects(key("resourceList"))) {
    specs.push_back(ReadResource(&resource, default_prefix));
    if (!names.insert(specs.back().resource).second) {
      resource.Fail("", "the resource " + specs.back().resource + " is there twice",
                    "give one of them another resourceName, or put both selectors in one list");
    }
  }
  // The SR-IOV operator writes null for a node without a policy.
  const bool none = Contains(root.Keys(), key("resourceList")) && !root.Has(key("resourceList"));
  if (!none && !root.Has(key("resourceList"))) root.Fail("resourceList", "is missing");
  root.Close();
  if (all != nullptr) *all = root.errors();
  RH_TRY(root.status());
  if (specs.empty() && !none) {
    return Fail(ErrorCode::kInvalid, what + ": /resourceList is empty", "name at least one resource");
  }
  return specs;
}

namespace {

std::vector<std::uint16_t> HexIds(JsonReader* reader, const std::string& key) {
  std::vector<std::uint16_t> ids;
  for (const std::string& text : reader->Strings(key).value_or(std::vector<std::string>{})) {
    const auto value = text.size() == 4 ? ParseHex(text) : std::nullopt;
    if (!value) {
      reader->Fail(key, "'" + text + "' is no PCI id", "write four hexadecimal digits: 15b3");
      continue;
    }
    ids.push_back(static_cast<std::uint16_t>(*value));
  }
  return ids;
}

std::vector<PfRange> PfRanges(JsonReader* reader, const std::string& key, bool addresses) {
  std::vector<PfRange> ranges;
  for (const std::string& text : reader->Strings(key).value_or(std::vector<std::string>{})) {
    auto range = PfRange::Parse(text);
    if (!range) {
      reader->Fail(key, range.error().message, range.error().hint);
      continue;
    }
    if (addresses) {
      const auto address = PciAddress::Parse(range->pf);
      if (!address) {
        reader->Fail(key, "'" + range->pf + "' is not a PCI address", "write it in full: 0000:86:00.0#0-3");
        continue;
      }
      range->pf = address->ToString();
    }
    ranges.push_back(*std::move(range));
  }
  return ranges;
}

std::vector<PciAddress> Addresses(JsonReader* reader, const std::string& key) {
  std::vector<PciAddress> addresses;
  for (const std::string& text : reader->Strings(key).value_or(std::vector<std::string>{})) {
    const auto address = PciAddress::Parse(text);
    if (!address) {
      reader->Fail(key, "'" + text + "' is not a PCI address", "write it in full: 0000:86:00.0");
      continue;
    }
    addresses.push_back(*address);
  }
  return addresses;
}

std::vector<std::string> LinkTypes(JsonReader* reader, const std::string& key) {
  std::vector<std::string> types;
  for (const std::string& text : reader->Strings(key).value_or(std::vector<std::string>{})) {
    const std::string type = ToLower(text);
    if (type != "ether" && type != "infiniband") {
      reader->Fail(key, "'" + text + "' is not a known link type", "use ether or infiniband");
      continue;
    }
    types.push_back(type);
  }
  return types;
}

std::vector<std::uint32_t> AcpiIndexes(JsonReader* reader, const std::string& key) {
  std::vector<std::uint32_t> indexes;
  for (const std::string& text : reader->Strings(key).value_or(std::vector<std::string>{})) {
    const auto index = ParseInt(text);
    if (!index || *index < 0 || *index > UINT32_MAX) {
      reader->Fail(key, "'" + text + "' is not an ACPI index",
                   "write the number in the device's acpi_index in sysfs");
      continue;
    }
    indexes.push_back(static_cast<std::uint32_t>(*index));
  }
  return indexes;
}

std::vector<std::uint16_t> Pkeys(JsonReader* reader, const std::string& key) {
  std::vector<std::uint16_t> pkeys;
  for (const std::string& text : reader->Strings(key).value_or(std::vector<std::string>{})) {
    const std::string lower = ToLower(text);
    const auto value = lower.rfind("0x", 0) == 0 ? ParseHex(lower.substr(2)) : std::nullopt;
    if (!value || *value > 0xffff) {
      reader->Fail(key, "'" + text + "' is not a partition key",
                   "write it in hexadecimal, for example 0x8001");
      continue;
    }
    pkeys.push_back(static_cast<std::uint16_t>(*value));
  }
  return pkeys;
}

std::vector<std::string> AuxTypes(JsonReader* reader, const std::string& key) {
  auto types = reader->Strings(key).value_or(std::vector<std::string>{});
  if (types.empty()) {
    reader->Fail(key, "is missing", R"(auxNetDevice needs the kinds of devices: ["sf"])");
  }
  for (const std::string& type : types) {
    if (type.empty() || type.find('.') != std::string::npos) {
      reader->Fail(key, "'" + type + "' is not a type of an auxiliary device",
                   "of the device mlx5_core.sf.2 it is sf");
    }
  }
  return types;
}

inventory::VdpaType ReadVdpaType(JsonReader* reader, const std::string& key) {
  const auto text = reader->String(key);
  if (!text || text->empty()) return inventory::VdpaType::kNone;
  if (*text == "vhost") return inventory::VdpaType::kVhost;
  if (*text == "virtio") return inventory::VdpaType::kVirtio;
  reader->Fail(key, "'" + *text + "' is not a type of vDPA device", "use vhost or virtio");
  return inventory::VdpaType::kNone;
}

void ReadPciKeys(JsonReader* reader, const AnyCase& key, Selector* selector) {
  selector->pci_addresses = Addresses(reader, key("pciAddresses"));
  selector->acpi_indexes = AcpiIndexes(reader, key("acpiIndexes"));
}

void ReadNetworkKeys(JsonReader* reader, const AnyCase& key, Selector* selector) {
  selector->pf_names = PfRanges(reader, key("pfNames"), false);
  selector->root_devices = PfRanges(reader, key("rootDevices"), true);
  selector->link_types = LinkTypes(reader, key("linkTypes"));
  selector->is_rdma = reader->Bool(key("isRdma"));
  selector->need_vhost_net = reader->Bool(key("needVhostNet")).value_or(false);
}

void ReadNetDeviceKeys(JsonReader* reader, const AnyCase& key, Selector* selector) {
  selector->pkeys = Pkeys(reader, key("pKeys"));
  selector->vdpa = ReadVdpaType(reader, key("vdpaType"));
  if (selector->vdpa != inventory::VdpaType::kNone && selector->is_rdma.value_or(false)) {
    reader->Fail(key("vdpaType"), "cannot stand beside isRdma", "make two resources of them");
  }
  selector->ddp_profiles = reader->Strings(key("ddpProfiles")).value_or(std::vector<std::string>{});
}

// Refuses keys that another deviceType knows and this one does not.
void RefuseKeysOfOthers(JsonReader* reader, const AnyCase& key, inventory::FunctionKind kind) {
  struct KeyOfOthers {
    const char* name;
    bool accelerator;
    bool auxiliary;
  };
  static constexpr KeyOfOthers kKeys[] = {
      {"pciAddresses", true, false}, {"pfNames", false, true},   {"rootDevices", false, true},
      {"linkTypes", false, true},    {"isRdma", false, true},    {"needVhostNet", false, true},
      {"pKeys", false, false},       {"vdpaType", false, false}, {"ddpProfiles", false, false},
  };
  if (kind == inventory::FunctionKind::kNetwork) {
    if (reader->Has(key("auxTypes"))) reader->Fail(key("auxTypes"), "is for deviceType auxNetDevice only");
    return;
  }
  if (kind == inventory::FunctionKind::kAccelerator && reader->Has(key("auxTypes"))) {
    reader->Fail(key("auxTypes"), "is for deviceType auxNetDevice only");
  }
  const bool accelerator = kind == inventory::FunctionKind::kAccelerator;
  for (const KeyOfOthers& known : kKeys) {
    if ((accelerator ? known.accelerator : known.auxiliary) || !reader->Has(key(known.name))) continue;
    reader->Fail(key(known.name), std::string("is not a selector of deviceType ") +
                                      (accelerator ? "accelerator" : "auxNetDevice"));
  }
}

}  // namespace

AnyCase::AnyCase(JsonReader* reader) {
  for (const std::string& key : reader->Keys()) {
    if (!spelling_.emplace(ToLower(key), key).second) {
      reader->Fail(key, "is there twice, differing only in case", "remove one of them");
    }
  }
}

std::string AnyCase::operator()(const std::string& name) const {
  const auto found = spelling_.find(ToLower(name));
  return found == spelling_.end() ? name : found->second;
}

Selector ReadSelector(JsonReader* reader, inventory::FunctionKind kind) {
  const AnyCase key(reader);
  Selector selector;
  selector.vendors = HexIds(reader, key("vendors"));
  selector.devices = HexIds(reader, key("devices"));
  selector.drivers = reader->Strings(key("drivers")).value_or(std::vector<std::string>{});
  RefuseKeysOfOthers(reader, key, kind);
  switch (kind) {
    case inventory::FunctionKind::kNetwork:
      ReadPciKeys(reader, key, &selector);
      ReadNetworkKeys(reader, key, &selector);
      ReadNetDeviceKeys(reader, key, &selector);
      break;
    case inventory::FunctionKind::kAccelerator:
      ReadPciKeys(reader, key, &selector);
      break;
    case inventory::FunctionKind::kAuxiliary:
      selector.acpi_indexes = AcpiIndexes(reader, key("acpiIndexes"));
      ReadNetworkKeys(reader, key, &selector);
      selector.aux_types = AuxTypes(reader, key("auxTypes"));
      break;
  }
  reader->Close();
  return selector;
}

namespace {

std::string DescribeMember(const PoolMember& member) {
  const inventory::NicFunction& function = member.function;
  std::string text = "  " + function.id;
  if (function.kind == inventory::FunctionKind::kAccelerator) return text;
  const std::string& pf = function.pf_name.empty() ? function.pf.ToString() : function.pf_name;
  if (function.vf_index >= 0) {
    text += (function.is_vf ? "  VF " : "  subfunction ") + std::to_string(function.vf_index) + " of " + pf;
  } else {
    text += "  " + pf;
  }
  if (!function.rdma_device.empty()) text += ", " + function.rdma_device;
  return text;
}

}  // namespace

Result<ConfigSource> DetectConfig(const Root& root, const std::string& path,
                                  const std::string& resource_prefix) {
  const auto text = RH_TRY(ReadFile(root.Path(path)));
  if (!text) {
    return Fail(ErrorCode::kNotFound, "reading the configuration " + path + ": no such file",
                "name a fabric.json, or a config.json of sriov-network-device-plugin");
  }
  const auto document = RH_TRY(JsonDocument::Parse(*text, path));
  const JsonReader reader = document.Root();
  RH_TRY(reader.status());
  ConfigSource source;
  source.resource_prefix = resource_prefix;
  source.is_proposal = path != kFabricPath && path != kSriovdpConfigPath;
  for (const std::string& key : reader.Keys()) {
    if (ToLower(key) == "resourcelist") {
      source.sriovdp = path;
      return source;
    }
  }
  if (reader.Has("rails") || reader.Has("version") || reader.Has("pools")) {
    source.fabric = path;
    return source;
  }
  return Fail(ErrorCode::kInvalid,
              path +
                  ": has neither \"rails\", as fabric.json, nor \"resourceList\", as "
                  "sriov-network-device-plugin's config.json",
              "see docs/reference/fabric.md and docs/operate/migration.md");
}

std::string PlanAsText(const Plan& plan) {
  std::string text;
  for (const auto& pool : plan.pools) {
    const std::size_t count = pool->members.size();
    text += pool->spec.resource + ": " + std::to_string(count) + (count == 1 ? " device\n" : " devices\n");
    for (const PoolMember& member : pool->members) text += DescribeMember(member) + "\n";
  }
  for (const std::string& rail : plan.absent_rails) {
    text += "rail " + rail + ": this node has no PF for it\n";
  }
  std::string left_out;
  for (const ExcludedDevice& one : NotAdvertised(plan))
    left_out += "  " + one.function->id + "  " + one.because + "\n";
  if (!left_out.empty()) text += "not given out:\n" + left_out;
  return text;
}

}  // namespace railhead::resources
