#include "deviceplugin/node/resources/sriovdp_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "deviceplugin/node/inventory/subfunctions.h"
#include "deviceplugin/node/resources/read_selector.h"
#include "deviceplugin/node/resources/selector.h"
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

}  // namespace railhead::resources
