// How near a pool's NICs are to some accelerators, as Prefer() wants to know it.
// Threads: pure function.
#pragma once

#include <map>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/node/topology/topology.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead {

// By PF, in the order of `accelerators`. Empty without accelerators.
std::map<PciAddress, std::vector<PciPath>> PathsTo(const ResourcePool& pool, const Topology& topology,
                                                   const std::vector<PciAddress>& accelerators);

}  // namespace railhead
