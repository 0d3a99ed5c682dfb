#include "deviceplugin/services/address_leasing/node_addresses.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cni/fabric/add_refusals.h"
#include "ipam/store/range.h"

namespace railhead::address_leasing {

std::optional<Error> WhyNoAddress(const Fabric& fabric, const Rail& rail, const std::string& node,
                                  std::optional<int> index) {
  if (!rail.subnet || fabric.Leases(rail)) return std::nullopt;
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

}  // namespace railhead::address_leasing
