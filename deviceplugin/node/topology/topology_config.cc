#include "deviceplugin/node/topology/topology_config.h"

#include <optional>
#include <set>
#include <utility>

#include "netns/base/files.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

std::optional<PciAddress> Address(JsonReader& reader, const std::string& key) {
  const std::string text = reader.RequiredString(key);
  if (text.empty()) return std::nullopt;
  const auto address = PciAddress::Parse(text);
  if (!address) reader.Fail(key, "'" + text + "' is no PCI address", "for example 0000:43:00.0");
  return address;
}

void ReadPaths(JsonReader& reader, TopologyConfig& config) {
  std::set<std::pair<PciAddress, PciAddress>> seen;
  auto entries = reader.Objects("paths");
  config.paths.reserve(entries.size());
  for (JsonReader& entry : entries) {
    const auto nic = Address(entry, "nic");
    const auto accelerator = Address(entry, "accelerator");
    const std::string name = entry.RequiredString("path");
    const auto path = ParsePciPath(name);
    if (!name.empty() && !path)
      entry.Fail("path", "'" + name + "' is no path class", "PIX, PXB, PHB, NODE or SYS");
    entry.Close();
    if (!nic || !accelerator || !path) continue;
    if (!seen.insert({*nic, *accelerator}).second) {
      entry.Fail("", nic->ToString() + " and " + accelerator->ToString() + " are there twice");
    }
    config.paths.push_back({*nic, *accelerator, *path});
  }
}

void ReadAccelerators(JsonReader& reader, AcceleratorRules& rules) {
  if (const auto vendors = reader.Strings("vendors"); vendors) {
    rules.kinds.clear();
    rules.kinds.reserve(vendors->size());
    for (std::size_t i = 0; i < vendors->size(); ++i) {
      const auto kind = AcceleratorKind::Parse((*vendors)[i]);
      if (kind) {
        rules.kinds.push_back(*kind);
      } else {
        reader.Fail("vendors", "entry " + std::to_string(i) + ", '" + (*vendors)[i] + "', is no PCI vendor",
                    "four hexadecimal digits, perhaps with a class: 10de or 8086:0380");
      }
    }
  }
  if (auto ids = reader.Object("ids"); ids) {
    for (const std::string& id : ids->Keys()) {
      if (const auto address = Address(*ids, id); address) rules.ids.emplace(id, *address);
    }
  }
  reader.Close();
}

}  // namespace

Result<TopologyConfig> ParseTopologyConfig(std::string_view text, const std::string& what) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what));
  JsonReader reader = document.Root();
  TopologyConfig config;
  ReadPaths(reader, config);
  if (auto accelerators = reader.Object("accelerators"); accelerators)
    ReadAccelerators(*accelerators, config.accelerators);
  reader.Close();
  RH_TRY(reader.status());
  return config;
}

Result<TopologyConfig> ReadTopologyConfig(const Root& root, const std::string& path) {
  const auto text = RH_TRY_WRAP(ReadFile(root.Path(path)), "reading the topology file");
  if (!text) return TopologyConfig{};
  return ParseTopologyConfig(*text, path);
}

}  // namespace railhead
