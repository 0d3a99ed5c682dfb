// A node with many VFs, for railheadd: a made-up sysfs and a fabric.
//
// A DGX H100 with eight GPUs and PCIe switches, and 128 VFs with RDMA devices on each of the eight
// ports that have a GPU beside them; its four storage ports have none. The fabric has a rail for each
// of the eight. Counters are there as real NICs have them, so that reading health is the real work.
// Threads: not thread-safe. A tree that cannot be built ends the program (fake_sysfs.h).
#pragma once

#include <string>
#include <vector>

namespace railhead::bench {

inline constexpr const char* kNodeResource = "railhead.io/roce";
inline constexpr int kNodeRails = 8;

struct NodeTree {
  std::vector<std::string> pfs;   // addresses of those that have VFs
  std::vector<std::string> vfs;   // sorted
  std::vector<std::string> gpus;  // in PCI order
  std::vector<std::string> netdevs;
};

// Below `directory`, which exists. `late`: with late binding.
NodeTree BuildNode(const std::string& directory, int vfs_per_pf, bool late);

// The fabric.json of that node.
std::string FabricOf(const NodeTree& tree, bool late);

}  // namespace railhead::bench
