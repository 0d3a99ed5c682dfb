#include "deviceplugin/node/resources/read_selector.h"

#include <optional>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/text.h"

namespace railhead::resources {
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

}  // namespace railhead::resources
