#include "deviceplugin/services/node_index/node_addresses.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "cni/fabric/add_refusals.h"
#include "deviceplugin/services/node_index/index_store.h"
#include "ipam/store/range.h"

namespace railhead::node_index {
namespace {

constexpr int kSmallestBlock = 16;  // addresses
// A subnet has two addresses that no host can have, and perhaps a gateway.
constexpr int kNoHosts = 3;

// Of an IPv6 block, which nobody counts.
constexpr std::uint64_t kUncounted = std::uint64_t{1} << 40U;

// The addresses for pods of a node that has `own` of the rail.
Result<ipam::RangeSet> RangesFor(const Rail& rail, const std::vector<IpRange>& own) {
  const IpPrefix network = rail.NetworkOf(own.front().first);
  return ipam::RangeSet::Make({network, own, rail.ExcludedFrom(own), rail.GatewayOf(network)});
}

// Whether the part is a block of a subnet whose router, first or last address lies in it.
bool HasAnEnd(const Rail& rail, const IpRange& part) {
  if (rail.node_subnet) return false;
  const auto gateway = rail.GatewayOf(*rail.subnet);
  return part.Contains(rail.subnet->First()) || part.Contains(rail.subnet->Last()) ||
         (gateway && part.Contains(*gateway));
}

// How many addresses each of the first parts has, in the order of their index.
std::vector<std::uint64_t> SizesOfParts(const Rail& rail, std::uint64_t parts) {
  // Those of all nodes are many, so each part takes its own. The parts follow each other.
  Rail of_part = rail;
  of_part.exclude.clear();
  of_part.probe_addresses.clear();
  of_part.probe_range.reset();
  std::vector<IpRange> excluded = rail.Excluded();
  std::ranges::sort(excluded, {}, &IpRange::first);
  std::vector<std::uint64_t> sizes;
  const int first_index = rail.indices ? rail.indices->first : 0;
  std::size_t next = 0;
  // Most parts have the same size.
  std::optional<std::uint64_t> usual;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const auto own = rail.RangesOf("", first_index + static_cast<int>(i));
    while (next < excluded.size() && excluded[next].last < own.front().first) ++next;
    of_part.exclude.clear();
    for (std::size_t at = next; at < excluded.size() && excluded[at].first <= own.front().last; ++at)
      of_part.exclude.push_back(excluded[at]);
    const bool is_usual = of_part.exclude.empty() && !HasAnEnd(rail, own.front());
    if (!is_usual || !usual) {
      const auto usable = RangesFor(of_part, own);
      sizes.push_back(usable ? std::min(usable->Size(), kUncounted) : 0);
      if (is_usual) usual = sizes.back();
    } else {
      sizes.push_back(*usual);
    }
  }
  return sizes;
}

// Of the numbers of that many things.
int BitsFor(std::size_t count) {
  return static_cast<int>(std::bit_width(std::max<std::size_t>(count, 1) - 1));
}

}  // namespace

std::optional<Error> WhyNoAddress(const Fabric& fabric, const Rail& rail, const std::string& node,
                                  std::optional<int> index) {
  if (!rail.subnet) return std::nullopt;
  const auto own = rail.RangesOf(node, index);
  if (own.empty()) return WhyNoRange(fabric, rail, node, index);
  if (auto gateway = CheckGatewayIn(rail, rail.NetworkOf(own.front().first)); !gateway)
    return std::move(gateway.error());
  auto usable = RangesFor(rail, own);
  if (usable) return std::nullopt;
  return std::move(usable.error());
}

std::optional<RailCapacity> CapacityOf(const Rail& rail) {
  if (!rail.subnet || !rail.PartLength()) return std::nullopt;
  const int bits = *rail.PartLength() - rail.subnet->length;
  RailCapacity capacity{.rail = rail.name, .blocks = bits < 16 ? std::uint64_t{1} << bits : kLastIndex + 1};
  if (rail.indices) {
    const auto indices = static_cast<std::uint64_t>(rail.indices->last - rail.indices->first) + 1;
    capacity.blocks = std::min(capacity.blocks, indices);
  }
  auto sizes = SizesOfParts(rail, capacity.blocks);
  std::erase(sizes, 0U);
  capacity.nodes = sizes.size();
  if (sizes.empty()) return capacity;
  const auto [least, most] = std::ranges::minmax(sizes);
  capacity.least = least;
  capacity.most = most;
  return capacity;
}

std::optional<int> BlockLength(const IpPrefix& subnet, std::size_t nodes, int vfs) {
  const int bits = subnet.address.Bits();
  const int host = bits - subnet.length;
  const int wanted = BitsFor(static_cast<std::size_t>(std::max(kSmallestBlock, 2 * vfs)));
  for (const std::size_t count : {2 * nodes, nodes}) {
    if (host - BitsFor(count) >= wanted) return bits - wanted;
  }
  const int left = host - BitsFor(nodes);
  if (left < BitsFor(static_cast<std::size_t>(vfs) + kNoHosts)) return std::nullopt;
  return bits - left;
}

}  // namespace railhead::node_index
