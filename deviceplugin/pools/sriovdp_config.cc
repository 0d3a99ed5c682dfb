#include "deviceplugin/pools/sriovdp_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cni/skel/json_reader.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

// A reader's keys as they are spelt in the text, found by their names in lower case.
class AnyCase {
 public:
  explicit AnyCase(JsonReader* reader) : reader_(*reader) {
    for (const std::string& key : reader_.Keys()) {
      if (!spelling_.emplace(ToLower(key), key).second) {
        reader_.Fail(key, "is there twice, differing only in case", "remove one of them");
      }
    }
  }
  [[nodiscard]] std::string operator()(const std::string& name) const {
    const auto found = spelling_.find(ToLower(name));
    return found == spelling_.end() ? name : found->second;
  }

 private:
  JsonReader& reader_;
  std::map<std::string, std::string> spelling_;
};

void RefuseKeys(JsonReader* reader, const AnyCase& key) {
  static constexpr std::array<const char*, 4> kNotYet = {"acpiIndexes", "ddpProfiles", "pKeys", "vdpaType"};
  for (const char* name : kNotYet) {
    if (!reader->Has(key(name))) continue;
    reader->Fail(key(name), "is not supported by railheadd",
                 "select the devices by vendors, devices, drivers, pciAddresses, pfNames, rootDevices, "
                 "linkTypes or isRdma");
  }
  if (reader->Bool(key("needVhostNet")).value_or(false)) {
    reader->Fail(key("needVhostNet"),
                 "is not supported by railheadd: it gives out kernel network devices only");
  }
}

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
        reader->Fail(key, "'" + range->pf + "' is no PCI address", "write it in full: 0000:86:00.0#0-3");
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
      reader->Fail(key, "'" + text + "' is no PCI address", "write it in full: 0000:86:00.0");
      continue;
    }
    addresses.push_back(*address);
  }
  return addresses;
}

std::vector<std::string> Drivers(JsonReader* reader, const std::string& key) {
  auto drivers = reader->Strings(key).value_or(std::vector<std::string>{});
  for (const std::string& driver : drivers) {
    if (driver == "vfio-pci" || driver == "uio_pci_generic" || driver == "igb_uio") {
      reader->Fail(
          key, "'" + driver + "' is a user-space driver: railheadd gives out kernel network devices only");
    }
  }
  return drivers;
}

std::vector<std::string> LinkTypes(JsonReader* reader, const std::string& key) {
  std::vector<std::string> types;
  for (const std::string& text : reader->Strings(key).value_or(std::vector<std::string>{})) {
    const std::string type = ToLower(text);
    if (type != "ether" && type != "infiniband") {
      reader->Fail(key, "'" + text + "' is no known link type", "use ether or infiniband");
      continue;
    }
    types.push_back(type);
  }
  return types;
}

Selector ReadSelector(JsonReader* reader) {
  const AnyCase key(reader);
  Selector selector;
  selector.vendors = HexIds(reader, key("vendors"));
  selector.devices = HexIds(reader, key("devices"));
  selector.drivers = Drivers(reader, key("drivers"));
  selector.pci_addresses = Addresses(reader, key("pciAddresses"));
  selector.pf_names = PfRanges(reader, key("pfNames"), false);
  selector.root_devices = PfRanges(reader, key("rootDevices"), true);
  selector.link_types = LinkTypes(reader, key("linkTypes"));
  selector.is_rdma = reader->Bool(key("isRdma"));
  RefuseKeys(reader, key);
  reader->Close();
  return selector;
}

std::vector<Selector> ReadSelectors(JsonReader* resource, const std::string& key) {
  std::vector<Selector> selectors;
  const nlohmann::json* raw = resource->Raw(key);
  if (raw == nullptr) {
    resource->Fail(key, "is missing", "say which devices are meant; {} selects all that may be given out");
  } else if (raw->is_array()) {
    for (JsonReader& reader : resource->Objects(key)) selectors.push_back(ReadSelector(&reader));
    if (selectors.empty()) resource->Fail(key, "is an empty list and selects nothing");
  } else if (auto reader = resource->Object(key); reader) {
    selectors.push_back(ReadSelector(&*reader));
  }
  return selectors;
}

void ReadAdditionalInfo(JsonReader* resource, const std::string& key, ResourceSpec* spec) {
  auto info = resource->Object(key);
  if (!info) return;
  for (const std::string& device : info->Keys()) {
    const auto address = PciAddress::Parse(device);
    if (device != "*" && !address) info->Fail(device, "is neither a PCI address nor \"*\"");
    auto values = info->Object(device);
    if (!values) continue;
    auto& target = spec->additional_info[address ? address->ToString() : device];
    for (const std::string& name : values->Keys()) target[name] = values->String(name).value_or("");
    values->Close();
  }
  info->Close();
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
  const std::string type = reader->String(key("deviceType")).value_or("netDevice");
  if (ToLower(type) != "netdevice") {
    reader->Fail(key("deviceType"), "'" + type + "' is not supported by railheadd",
                 "use netDevice or leave it out");
  }
  spec.exclude_topology = reader->Bool(key("excludeTopology")).value_or(false);
  ReadAdditionalInfo(reader, key("additionalInfo"), &spec);
  spec.selectors = ReadSelectors(reader, key("selectors"));
  const bool rdma = std::any_of(spec.selectors.begin(), spec.selectors.end(),
                                [](const Selector& selector) { return selector.is_rdma.value_or(false); });
  if (rdma) spec.rdma_nodes = RdmaNodes::kAll;
  reader->Close();
  return spec;
}

}  // namespace

Result<std::vector<ResourceSpec>> ParseSriovdpConfig(std::string_view text, const std::string& what,
                                                     const std::string& default_prefix) {
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
  if (!root.Has(key("resourceList"))) root.Fail("resourceList", "is missing");
  root.Close();
  RH_TRY(root.status());
  if (specs.empty()) {
    return Fail(ErrorCode::kInvalid, what + ": /resourceList is empty", "name at least one resource");
  }
  return specs;
}

}  // namespace railhead
