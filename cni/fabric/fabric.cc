#include "cni/fabric/fabric.h"

#include <algorithm>

#include "cni/fabric/fabric_base.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

// base + (number << bits); blocks of IPv6 subnets are often larger than 64 bits.
IpAddress PlusShifted(const IpAddress& base, int number, int bits) {
  std::array<std::uint8_t, 16> bytes{};
  std::copy_n(base.Data(), base.Size(), bytes.begin());
  auto carry = static_cast<std::uint64_t>(number) << (bits % 8);
  for (int at = static_cast<int>(base.Size()) - 1 - bits / 8; at >= 0 && carry != 0; --at) {
    carry += bytes[static_cast<std::size_t>(at)];
    bytes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(carry);
    carry >>= 8;
  }
  return *IpAddress::FromBytes(bytes.data(), base.Size());
}

// The address after or before the range; nullopt: there is none.
std::optional<IpAddress> Beside(const IpRange& range, bool after) {
  if (!after) return range.first.Previous();
  const IpAddress next = range.last.Plus(1);
  return range.last < next ? std::optional(next) : std::nullopt;
}

// The first or last address of the range that nothing takes.
std::optional<IpAddress> EndOf(const IpRange& range, const std::vector<IpRange>& taken, bool is_first) {
  std::optional<IpAddress> at = is_first ? range.first : range.last;
  while (at && range.Contains(*at)) {
    const auto in = std::ranges::find_if(taken, [&](const IpRange& one) { return one.Contains(*at); });
    if (in == taken.end()) return at;
    at = Beside(*in, is_first);
  }
  return std::nullopt;
}

std::optional<IpAddress> EndOf(const std::vector<IpRange>& ranges, const std::vector<IpRange>& taken,
                               bool is_first) {
  std::optional<IpAddress> end;
  for (const IpRange& range : ranges) {
    const auto of_range = EndOf(range, taken, is_first);
    if (of_range && (!end || (is_first ? *of_range < *end : *end < *of_range))) end = of_range;
  }
  return end;
}

std::optional<IpAddress> InRange(const IpRange& range, std::optional<int> position) {
  if (!position) return std::nullopt;
  const auto offset = static_cast<std::uint64_t>(*position);
  const auto most = range.last.Minus(range.first);
  return !most || offset <= *most ? std::optional(range.first.Plus(offset)) : std::nullopt;
}

}  // namespace

std::vector<IpRange> Rail::Excluded() const {
  std::vector<IpRange> excluded = exclude;
  for (const auto& [node, address] : probe_addresses) excluded.push_back({address, address});
  if (probe_range) excluded.push_back(*probe_range);
  return excluded;
}

std::optional<int> Rail::PositionOf(int node_index) const {
  if (!indices) return node_index;
  return indices->Contains(node_index) ? std::optional(node_index - indices->first) : std::nullopt;
}

IpPrefix Rail::NetworkOf(const IpAddress& address) const {
  return node_subnet ? IpPrefix{address, *node_subnet}.Network() : subnet.value_or(IpPrefix::Host(address));
}

std::optional<IpAddress> Rail::GatewayOf(const IpPrefix& network) const {
  return gateway ? gateway->In(network) : std::nullopt;
}

std::vector<IpRange> Rail::RangesOf(const std::string& node, std::optional<int> node_index) const {
  if (const auto named = node_ranges.find(node); named != node_ranges.end()) return named->second;
  // A node that may not use its index may not use one that a rail keeps, either.
  if (!node_index) return {};
  const int own = index.value_or(*node_index);
  if (const auto numbered = node_ranges.find(std::to_string(own)); numbered != node_ranges.end()) {
    return numbered->second;
  }
  const auto part = PositionOf(own);
  const auto length = PartLength();
  if (!length || !subnet || !part) return {};
  // None when the subnet has no such part.
  const int index_bits = *length - subnet->length;
  if (index_bits < 63 && (static_cast<std::int64_t>(*part) >> index_bits) != 0) return {};
  const IpAddress first = PlusShifted(subnet->First(), *part, subnet->address.Bits() - *length);
  return {IpRange{first, first.Filled(*length)}};
}

bool Rail::UsesIndex() const {
  const auto is_index = [](const auto& range) {
    return range.first.find_first_not_of("0123456789") == std::string::npos;
  };
  return PartLength() || std::ranges::any_of(node_ranges, is_index);
}

bool Fabric::UsesIndices() const {
  return std::ranges::any_of(rails, &Rail::UsesIndex);
}

std::vector<IpRange> Rail::ExcludedFrom(const std::vector<IpRange>& ranges) const {
  // The probe addresses of other nodes are many.
  std::vector<IpRange> excluded = Excluded();
  std::erase_if(excluded, [&](const IpRange& one) {
    return std::ranges::none_of(
        ranges, [&](const IpRange& range) { return one.first <= range.last && range.first <= one.last; });
  });
  if (const auto own = ProbeAddressAmong(ranges)) excluded.push_back({*own, *own});
  return excluded;
}

std::optional<IpAddress> Rail::ProbeAddressAmong(const std::vector<IpRange>& ranges) const {
  if (!probe_place || !subnet || ranges.empty()) return std::nullopt;
  const IpPrefix network = NetworkOf(ranges.front().first);
  std::vector<IpRange> taken = exclude;
  if (const auto router = GatewayOf(network)) taken.push_back({*router, *router});
  if (network.length < network.address.Bits() - 1) {
    taken.push_back({network.First(), network.First()});
    if (!network.address.IsV6()) taken.push_back({network.Last(), network.Last()});
  }
  const bool is_first = *probe_place == ProbePlace::kFirst;
  const auto first = EndOf(ranges, taken, is_first);
  // Another one is a pod's.
  if (!first || EndOf(ranges, taken, !is_first) == first) return std::nullopt;
  return first;
}

std::map<std::string, IpAddress> Rail::ProbeAddressesOf(const NodeIndices& nodes) const {
  if (!probe_range && !probe_place) return probe_addresses;
  std::map<std::string, IpAddress> addresses;
  for (const auto& [node, node_index] : nodes) {
    const auto own = probe_range ? InRange(*probe_range, PositionOf(node_index))
                                 : ProbeAddressAmong(RangesOf(node, node_index));
    if (own) addresses.emplace(node, *own);
  }
  return addresses;
}

const Rail* Fabric::FindRail(const std::string& name) const {
  const auto found = std::ranges::find(rails, name, &Rail::name);
  return found == rails.end() ? nullptr : &*found;
}

std::optional<int> Fabric::IndexOf(const std::string& node) const {
  const auto found = nodes.find(node);
  return found == nodes.end() ? std::nullopt : std::optional<int>(found->second);
}

const Rail* Fabric::RailOfPf(const std::string& pf_name, const std::string& pf_bdf,
                             const std::vector<std::string>& pfs_in_order) const {
  for (const auto& rail : rails) {
    for (const auto& pf : rail.pfs) {
      if (pf == pf_name || ToLower(pf) == pf_bdf) return &rail;
    }
  }
  const auto at = std::ranges::find(pfs_in_order, pf_bdf);
  if (at == pfs_in_order.end()) return nullptr;
  const auto position = static_cast<int>(at - pfs_in_order.begin());
  const auto found = std::ranges::find(rails, position, &Rail::position);
  return found == rails.end() ? nullptr : &*found;
}

Result<std::optional<Fabric>> ReadFabric(const Root& root, const std::string& path) {
  const auto text = RH_TRY(ReadRootFile(root.Path(path)));
  if (!text) return std::nullopt;
  Fabric fabric = RH_TRY(ParseFabric(*text, path));
  if (fabric.node_groups.empty()) return fabric;
  const std::string name = RH_TRY(NodeName(root));
  return RH_TRY(ParseFabricOf(name, *text, path));
}

}  // namespace railhead
