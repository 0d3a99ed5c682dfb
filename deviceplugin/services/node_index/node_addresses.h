// A node's part of a rail: whether it has addresses for pods, and how long a block should be. For the claim
// of an index, and for the tools that check and write fabric.json. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::node_index {

// Why pods of node (`node`, `index`) get no address of the rail, and the way out. nullopt: they can get
// one, or the rail has no subnet.
std::optional<Error> WhyNoAddress(const Fabric& fabric, const Rail& rail, const std::string& node,
                                  std::optional<int> index);

// What the subnet of a rail with nodeBlock or nodeSubnet carries. Addresses of the gateway, of probes and of
// exclusions are no pod's, and the subnet's first and last IPv4 addresses are no host's.
struct RailCapacity {
  std::string rail;
  std::uint64_t blocks = 0;  // of indices up to kLastIndex
  std::uint64_t nodes = 0;   // blocks that have an address for a pod
  std::uint64_t least = 0;   // addresses of the smallest of these blocks
  std::uint64_t most = 0;    // of the largest

  bool operator==(const RailCapacity&) const = default;
  static void List(auto& f) {
    f("rail", &RailCapacity::rail);
    f("blocks", &RailCapacity::blocks);
    f("nodes", &RailCapacity::nodes);
    f("leastAddresses", &RailCapacity::least);
    f("mostAddresses", &RailCapacity::most);
  }
};

// nullopt: the rail has no subnet, or neither nodeBlock nor nodeSubnet.
std::optional<RailCapacity> CapacityOf(const Rail& rail);

// Prefix length of a node's block. A block has two addresses for each VF, since a released address stays
// unused for some time. The subnet has room for twice as many nodes. Both are less in a small subnet.
// nullopt: a block has not even one address for each VF.
std::optional<int> BlockLength(const IpPrefix& subnet, std::size_t nodes, int vfs);

}  // namespace railhead::node_index
