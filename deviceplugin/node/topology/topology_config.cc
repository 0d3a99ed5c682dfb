#include "deviceplugin/node/topology/topology_config.h"

#include "deviceplugin/node/topology/topology_shape.h"
#include "netns/base/files.h"
#include "netns/json/record_io.h"

namespace railhead::topology {

Result<TopologyConfig> ParseTopologyConfig(std::string_view text, const std::string& what) {
  const auto fields = RH_TRY(ParseRecord<TopologyFields>(text, what, UnknownFields::kRefuse));
  TopologyConfig config;
  config.paths.reserve(fields.paths.size());
  for (const PathFields& path : fields.paths)
    config.paths.push_back({path.nic.value, path.accelerator.value, path.path.value});
  if (fields.vendors) {
    config.accelerators.kinds.clear();
    for (const auto& kind : *fields.vendors) config.accelerators.kinds.push_back(kind.value);
  }
  for (const auto& [id, address] : fields.ids) config.accelerators.ids.emplace(id, address.value);
  return config;
}

Result<TopologyConfig> ReadTopologyConfig(const Root& root, const std::string& path) {
  const auto text = RH_TRY_WRAP(ReadRootFile(root.Path(path)), "reading the topology file");
  if (!text) return TopologyConfig{};
  return ParseTopologyConfig(*text, path);
}

}  // namespace railhead::topology
