#include "deviceplugin/services/health/watched_functions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace railhead::health {

std::vector<inventory::NicFunction> WatchedFunctions(const NodeSnapshot& node,
                                                     const std::vector<DeviceHealth>& known) {
  std::set<std::string> pfs;
  for (const auto& [rail, pf] : node.pf_of_rail) pfs.insert(pf);
  for (const auto& pool : node.pools) {
    for (const resources::PoolMember& member : pool->members) pfs.insert(member.function.pf.ToString());
  }
  std::vector<inventory::NicFunction> functions = node.inventory->All();
  std::map<std::string, const inventory::NicFunction*> here;
  for (const inventory::NicFunction& function : functions) here[function.id] = &function;
  for (const DeviceHealth& device : known) {
    const auto found = here.find(device.id);
    const bool in_no_pool = found == here.end() || (device.is_vf && found->second->driver.empty());
    if (in_no_pool || (device.is_vf && !device.healthy)) pfs.insert(device.pf);
  }
  std::erase_if(functions, [&](const inventory::NicFunction& function) {
    return !pfs.contains(function.pf.ToString());
  });
  return functions;
}

}  // namespace railhead::health
