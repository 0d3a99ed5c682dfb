// PathsTo: the paths from a pool's NICs to some accelerators, for Prefer().
// Threads: pure function.
#pragma once

#include <map>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/topology/topology.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::late_binding {

// By PF, in the order of `accelerators`. Empty without accelerators.
std::map<PciAddress, std::vector<PciPath>> PathsTo(const resources::ResourcePool& pool,
                                                   const topology::Topology& topology,
                                                   const std::vector<PciAddress>& accelerators);

}  // namespace railhead::late_binding
