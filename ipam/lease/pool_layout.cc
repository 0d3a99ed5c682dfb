#include "ipam/lease/pool_layout.h"

#include <algorithm>
#include <bit>

#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

constexpr std::uint64_t kMaxBlockSize = std::uint64_t{1} << 20;

IpRange RangeFrom(const IpPrefix& subnet, std::uint64_t index, std::uint64_t size) {
  const IpAddress first = subnet.First().Plus(index * size);
  return {first, std::min(first.Plus(size - 1), subnet.Last())};
}

}  // namespace

Result<PoolLayout> PoolLayout::Make(RangeSet ranges, std::uint64_t size) {
  if (!std::has_single_bit(size) || size > kMaxBlockSize) {
    return Fail(ErrorCode::kInvalid, "blockSize " + std::to_string(size) + " is not a power of two up to " +
                                         std::to_string(kMaxBlockSize));
  }
  return PoolLayout(std::move(ranges), size);
}

IpRange PoolLayout::Block(std::uint64_t index) const {
  return RangeFrom(ranges_.subnet(), index, size_);
}

std::uint64_t PoolLayout::AddressesOf(std::uint64_t index) const {
  const auto inside = ranges_.Within({Block(index)});
  return inside ? inside->Size() : 0;
}

std::uint64_t PoolLayout::IndexOf(const IpAddress& address) const {
  const auto offset = address.Minus(ranges_.subnet().First());
  return offset ? std::min(*offset / size_, kMaxBlocks - 1) : kMaxBlocks - 1;
}

std::optional<std::uint64_t> PoolLayout::NextFrom(std::uint64_t from) const {
  if (from >= Count()) return std::nullopt;
  for (const IpRange& interval : ranges_.intervals()) {
    if (IndexOf(interval.last) < from) continue;
    const std::uint64_t next = std::max(IndexOf(interval.first), from);
    // An interval far behind is cut to the last block, which need not be in it.
    if (AddressesOf(next) != 0) return next;
  }
  return std::nullopt;
}

std::uint64_t PoolLayout::Count() const {
  return IndexOf(ranges_.subnet().Last()) + 1;
}

std::uint64_t PoolLayout::StartOf(std::string_view node) const {
  // Mixed: names that differ in the last character only are spread as well.
  std::uint64_t hash = Fnv1a64(node);
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdU;
  hash ^= hash >> 33U;
  return hash % Count();
}

std::optional<IpRange> RangeOfBlock(std::string_view pool, std::uint64_t index, std::uint64_t size) {
  const auto subnet = IpPrefix::Parse(pool);
  if (!subnet) return std::nullopt;
  return RangeFrom(*subnet, index, size);
}

}  // namespace railhead::ipam
