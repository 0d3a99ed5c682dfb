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

// Which block of 2^host addresses has it; nullopt: above 2^64.
std::optional<std::uint64_t> IndexOfBlock(const IpPrefix& subnet, const IpAddress& address, int host) {
  std::uint64_t index = 0;
  for (int bit = subnet.length; bit < address.Bits() - host; ++bit) {
    if ((index >> 63U) != 0) return std::nullopt;
    const unsigned byte = address.Data()[bit / 8];
    index = index << 1U | (byte >> (7U - static_cast<unsigned>(bit % 8)) & 1U);
  }
  return index;
}

// Of the numbers of that many things.
int BitsFor(std::size_t count) {
  return static_cast<int>(std::bit_width(std::max<std::size_t>(count, 1) - 1));
}

}  // namespace

std::optional<Error> WhyNoAddress(const Fabric& fabric, const Rail& rail, const std::string& node,
                                  std::optional<int> index) {
  if (!rail.subnet) return std::nullopt;
  ipam::RangeSpec spec;
  spec.ranges = rail.RangesOf(node, index);
  if (spec.ranges.empty()) return WhyNoRange(fabric, rail, node, index);
  spec.subnet = *rail.subnet;
  spec.gateway = rail.gateway;
  // Exclusions may cover the whole range. Those elsewhere, such as the other nodes' probe addresses, are
  // many.
  const auto overlaps = [&](const IpRange& excluded) {
    return std::ranges::any_of(spec.ranges, [&](const IpRange& range) {
      return !(excluded.last < range.first || range.last < excluded.first);
    });
  };
  std::ranges::copy_if(rail.Excluded(), std::back_inserter(spec.exclusions), overlaps);
  auto ranges = ipam::RangeSet::Make(spec);
  if (ranges) return std::nullopt;
  return std::move(ranges.error());
}

std::optional<RailCapacity> CapacityOf(const Rail& rail) {
  if (!rail.subnet || !rail.node_block) return std::nullopt;
  const int bits = *rail.node_block - rail.subnet->length;
  const int host = rail.subnet->address.Bits() - *rail.node_block;
  RailCapacity capacity{.rail = rail.name, .blocks = bits < 16 ? std::uint64_t{1} << bits : kLastIndex + 1};
  if (rail.indices) {
    const auto indices = static_cast<std::uint64_t>(rail.indices->last - rail.indices->first) + 1;
    capacity.blocks = std::min(capacity.blocks, indices);
  }
  const auto usable = ipam::RangeSet::Make({*rail.subnet, {}, rail.Excluded(), rail.gateway});
  if (!usable) return capacity;
  std::vector<std::uint64_t> sizes(capacity.blocks);
  for (const IpRange& interval : usable->intervals()) {
    IpAddress first = interval.first;
    while (first <= interval.last) {
      const auto index = IndexOfBlock(*rail.subnet, first, host);
      if (!index || *index >= capacity.blocks) break;
      const IpAddress last = std::min(interval.last, first.Filled(*rail.node_block));
      const std::uint64_t count = last.Minus(first).value_or(kUncounted);
      sizes[*index] += std::min(count, kUncounted) + 1;
      if (last == interval.last) break;
      first = last.Plus(1);
    }
  }
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
