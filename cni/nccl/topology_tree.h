// The shape of a topology file: which functions share a switch, in as few nodes as NCCL needs.
//
// NCCL derives distances from the tree of <pci> nodes (src/graph/paths.cc). PIX: two functions below one
// node. PXB: nodes between them. PHB: only the <cpu> in common. SYS: not even that. NCCL does not have NODE:
// other host bridges of a NUMA node are PHB for it, too.
//
// A switch is one node, although PCI has two bridges for it. So a function hangs on the bridge above its
// port. The tree omits a bridge at which no two functions part. In this tree any two functions are as far
// apart as PciPathBetween (netns/sys/pci_path.h) says. All functions of one host bridge hang on one <cpu>:
// the node of the first of them whose NUMA node is known. Threads: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "netns/sys/pci.h"

namespace railhead::nccl {

struct TopologySwitch {
  std::string path;                    // of the bridge: "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
  std::vector<std::size_t> functions;  // positions in the functions given to TopologyTreeOf
  std::vector<std::size_t> switches;   // positions in TopologyTree::switches
};

// What hangs on a processor.
struct TopologyCpu {
  std::vector<std::size_t> functions;
  std::vector<std::size_t> switches;
};

struct TopologyTree {
  std::map<int, TopologyCpu> cpus;  // by NUMA node; -1: the kernel knows none
  std::vector<TopologySwitch> switches;
};

// `functions` in the order in which they will be listed.
TopologyTree TopologyTreeOf(const std::vector<PciDevice>& functions);

}  // namespace railhead::nccl
