#include "deviceplugin/services/health/watched_functions.h"

#include <map>
#include <set>
#include <string>

namespace railhead {

std::vector<NicFunction> WatchedFunctions(const Plan& plan, const std::vector<DeviceHealth>& known) {
  std::set<std::string> pfs = plan.rail_pfs;
  for (const auto& pool : plan.pools) {
    for (const PoolMember& member : pool->members) pfs.insert(member.function.pf.ToString());
  }
  std::vector<NicFunction> functions = plan.inventory->All();
  std::map<std::string, const NicFunction*> here;
  for (const NicFunction& function : functions) here[function.id] = &function;
  for (const DeviceHealth& device : known) {
    const auto found = here.find(device.id);
    const bool in_no_pool = found == here.end() || (device.is_vf && found->second->driver.empty());
    if (in_no_pool || (device.is_vf && !device.healthy)) pfs.insert(device.pf);
  }
  std::erase_if(functions,
                [&](const NicFunction& function) { return !pfs.contains(function.pf.ToString()); });
  return functions;
}

}  // namespace railhead
