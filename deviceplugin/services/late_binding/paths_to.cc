#include "deviceplugin/services/late_binding/paths_to.h"

namespace railhead::late_binding {

std::map<PciAddress, std::vector<PciPath>> PathsTo(const resources::ResourcePool& pool,
                                                   const topology::Topology& topology,
                                                   const std::vector<PciAddress>& accelerators) {
  std::map<PciAddress, std::vector<PciPath>> all;
  if (accelerators.empty()) return all;
  for (const resources::PoolMember& member : pool.members) {
    auto& paths = all[member.function.pf];
    if (!paths.empty()) continue;
    paths.reserve(accelerators.size());
    for (const PciAddress& accelerator : accelerators)
      paths.push_back(topology.Between(member.function.address, accelerator).value_or(PciPath::kSys));
  }
  return all;
}

}  // namespace railhead::late_binding
