#include "deviceplugin/services/late_binding/pci_distances.h"

namespace railhead {

std::map<PciAddress, std::vector<PciPath>> PathsTo(const ResourcePool& pool, const Topology& topology,
                                                   const std::vector<PciAddress>& accelerators) {
  std::map<PciAddress, std::vector<PciPath>> all;
  if (accelerators.empty()) return all;
  for (const PoolMember& member : pool.members) {
    auto& paths = all[member.function.pf];
    if (!paths.empty()) continue;
    paths.reserve(accelerators.size());
    for (const PciAddress& accelerator : accelerators)
      paths.push_back(topology.Between(member.function.address, accelerator).value_or(PciPath::kSys));
  }
  return all;
}

}  // namespace railhead
