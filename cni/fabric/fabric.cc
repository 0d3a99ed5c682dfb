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

std::vector<IpRange> Rail::RangesOf(const std::string& node, std::optional<int> node_index) const {
  if (const auto named = node_ranges.find(node); named != node_ranges.end()) return named->second;
  // A node that may not use its index may not use one that a rail keeps, either.
  if (!node_index) return {};
  const int own = index.value_or(*node_index);
  if (const auto numbered = node_ranges.find(std::to_string(own)); numbered != node_ranges.end()) {
    return numbered->second;
  }
  const auto part = PositionOf(own);
  if (!node_block || !subnet || !part) return {};
  // None when the subnet has no such block.
  const int index_bits = *node_block - subnet->length;
  if (index_bits < 63 && (static_cast<std::int64_t>(*part) >> index_bits) != 0) return {};
  const IpAddress first = PlusShifted(subnet->First(), *part, subnet->address.Bits() - *node_block);
  return {IpRange{first, first.Filled(*node_block)}};
}

bool Rail::UsesIndex() const {
  const auto is_index = [](const auto& range) {
    return range.first.find_first_not_of("0123456789") == std::string::npos;
  };
  return node_block || std::ranges::any_of(node_ranges, is_index);
}

bool Fabric::UsesIndices() const {
  return std::ranges::any_of(rails, &Rail::UsesIndex);
}

std::map<std::string, IpAddress> Rail::ProbeAddressesOf(const NodeIndices& nodes) const {
  if (!probe_range) return probe_addresses;
  const auto most = probe_range->last.Minus(probe_range->first);
  std::map<std::string, IpAddress> addresses;
  for (const auto& [node, node_index] : nodes) {
    const auto part = PositionOf(node_index);
    if (!part) continue;
    const auto offset = static_cast<std::uint64_t>(*part);
    if (!most || offset <= *most) addresses.emplace(node, probe_range->first.Plus(offset));
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
