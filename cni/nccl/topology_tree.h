// The shape of a topology file: which functions share a switch, in as few nodes as NCCL needs.
//
// NCCL knows five distances and tells them by the tree of <pci> nodes (src/graph/paths.cc): PIX,
// two functions below one node; PXB, nodes on the way; PHB, only the <cpu>; SYS, not even that. It
// has no NODE: other host bridges of a NUMA node are PHB for it, too. A switch is one node, though
// PCI has two bridges of it, so a function hangs on the bridge above the port that it is in; a
// bridge that no two of them part at is left out. In this tree each two functions are as far
// apart as PciPathBetween (netns/sys/pci_path.h) says.
// All of one host bridge hang on one <cpu>: that of the first whose NUMA node is known.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cni/nccl/pci_function.h"

namespace railhead {

struct TopologySwitch {
  std::string path;                    // of the bridge: "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
  std::vector<std::size_t> functions;  // positions in what TopologyTreeOf was given
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

// `functions` in the order in which they are to be listed.
TopologyTree TopologyTreeOf(const std::vector<PciFunction>& functions);

}  // namespace railhead
