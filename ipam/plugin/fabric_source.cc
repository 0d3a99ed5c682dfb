#include "ipam/plugin/fabric_source.h"

#include <algorithm>
#include <vector>

#include "cni/fabric/node_index.h"
#include "netns/base/node.h"

namespace railhead::ipam {
namespace {

// This node's index; nullopt when nothing says that other nodes exist.
Result<std::optional<int>> IndexAmongNodes(const RangeFields& range, bool required, FabricSource& source) {
  const Fabric* fabric = RH_TRY(source.IfThere());
  if (!required && (fabric == nullptr || fabric->nodes.size() < 2)) return std::nullopt;
  const std::string node = RH_TRY(source.Node());
  const auto index = RH_TRY_WRAP(source.Index(), range.where);
  if (index) return index;
  return Fail(ErrorCode::kInvalid,
              range.where + ": node '" + node + "' has no index, which says what of " +
                  range.subnet.ToString() + " is its own",
              "list the node in 'nodes' of " + source.path());
}

// The slice number `index`; empty when the subnet has none.
std::vector<IpRange> Slice(const IpPrefix& subnet, int length, int index) {
  if (length < subnet.length || length > subnet.address.Bits()) return {};
  Rail rail;
  rail.subnet = subnet;
  rail.node_block = length;
  return rail.RangesOf({}, index);
}

}  // namespace

Result<const Fabric*> FabricSource::IfThere() {
  if (!fabric_) fabric_ = RH_TRY(ReadFabric(root_, path_));
  return fabric_ ? &*fabric_ : nullptr;
}

Result<const Fabric*> FabricSource::For(const PoolFields& fields) {
  if (const Fabric* fabric = RH_TRY(IfThere()); fabric != nullptr) return fabric;
  return Fail(ErrorCode::kInvalid,
              fields.where + "/rail: '" + *fields.rail + "' needs the fabric file " + path_ +
                  ", which does not exist",
              "write it, or give subnet and range in the configuration");
}

Result<std::string> FabricSource::Node() {
  if (node_.empty()) node_ = RH_TRY(NodeName(root_));
  return node_;
}

Result<std::optional<int>> FabricSource::Index() {
  const Fabric* fabric = RH_TRY(IfThere());
  if (fabric == nullptr) return std::nullopt;
  return IndexOfThisNode(root_, *fabric, RH_TRY(Node()));
}

Result<IpRange> WithinSlice(const RangeFields& range, const IpRange& given, const std::optional<int>& length,
                            FabricSource& source) {
  const auto index = RH_TRY(IndexAmongNodes(range, length.has_value(), source));
  if (!index) return given;
  if (!length) {
    return Fail(ErrorCode::kInvalid,
                range.where + ": all nodes would give the same addresses of " + range.subnet.ToString(),
                "give node_slice_size, or make it a rail of the fabric with nodeBlock or nodeRanges");
  }
  for (const IpRange& own : Slice(range.subnet, *length, *index)) {
    const IpRange both{std::max(given.first, own.first), std::min(given.last, own.last)};
    if (both.first <= both.last) return both;
  }
  return Fail(ErrorCode::kInvalid,
              range.where + ": " + given.ToString() + " has no address in the slice of /" +
                  std::to_string(*length) + " that is this node's, number " + std::to_string(*index),
              "widen the range, or give node_slice_size a greater number");
}

}  // namespace railhead::ipam
