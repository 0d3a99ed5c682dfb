#include "ipam/store/aligned.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace railhead::ipam {
namespace {

// Look-ups for each pool and search. They are enough for every pool of 48 addresses, whatever is taken. They
// are also enough for larger pools, unless rails that are used separately have left comb-like gaps in them.
constexpr std::size_t kLooks = 48;

// How addresses of different pools are compared.
enum class Measure { kHostPart, kIndex };

std::optional<std::uint64_t> PositionOf(const RangeSet& ranges, const IpAddress& address, Measure measure) {
  if (measure == Measure::kIndex) return ranges.IndexOf(address);
  return address.Minus(ranges.subnet().First());
}

std::optional<IpAddress> AddressAt(const RangeSet& ranges, std::uint64_t position, Measure measure) {
  if (measure == Measure::kIndex) return ranges.At(position);
  const auto last = ranges.subnet().Last().Minus(ranges.subnet().First());
  if (last && *last < position) return std::nullopt;
  return ranges.subnet().First().Plus(position);
}

// The lowest position >= `from` of a free address.
Result<std::optional<std::uint64_t>> FreeFrom(const AlignedPool& pool, std::uint64_t from, Measure measure) {
  const auto start = AddressAt(*pool.ranges, from, measure);
  if (!start) return std::nullopt;
  const auto found = RH_TRY(FirstFreeFrom(*pool.ranges, *pool.runs, *start));
  return found ? PositionOf(*pool.ranges, *found, measure) : std::nullopt;
}

// Behind the last position that any pool has allocated.
std::uint64_t StartOf(const std::vector<AlignedPool>& pools, Measure measure) {
  std::uint64_t start = 0;
  for (const AlignedPool& pool : pools) {
    if (!pool.last_allocated) continue;
    if (const auto last = PositionOf(*pool.ranges, *pool.last_allocated, measure); last && *last + 1 != 0) {
      start = std::max(start, *last + 1);
    }
  }
  return start;
}

// The lowest position >= `from` that is free in all pools. Each pool in turn gives its next free position,
// until all agree.
Result<std::optional<std::uint64_t>> CommonFrom(const std::vector<AlignedPool>& pools, std::uint64_t from,
                                                Measure measure) {
  std::uint64_t position = from;
  std::size_t agreed = 0;
  for (std::size_t look = 0; look < kLooks * pools.size(); ++look) {
    const auto next = RH_TRY(FreeFrom(pools[look % pools.size()], position, measure));
    if (!next) return std::nullopt;
    agreed = *next == position ? agreed + 1 : 1;
    position = *next;
    if (agreed == pools.size()) return position;
  }
  return std::nullopt;
}

Result<std::optional<std::vector<IpAddress>>> Search(const std::vector<AlignedPool>& pools, Measure measure) {
  const std::uint64_t start = StartOf(pools, measure);
  auto common = RH_TRY(CommonFrom(pools, start, measure));
  if (!common && start != 0) common = RH_TRY(CommonFrom(pools, 0, measure));
  if (!common) return std::nullopt;
  std::vector<IpAddress> addresses;
  addresses.reserve(pools.size());
  for (const AlignedPool& pool : pools) {
    const auto address = AddressAt(*pool.ranges, *common, measure);
    if (!address) return Fail(ErrorCode::kInternal, "a free address is outside of its subnet");
    addresses.push_back(*address);
  }
  return addresses;
}

}  // namespace

Result<std::optional<std::vector<IpAddress>>> NextAligned(const std::vector<AlignedPool>& pools) {
  if (auto found = RH_TRY(Search(pools, Measure::kHostPart)); found) return found;
  const bool same_size = std::ranges::adjacent_find(pools, [](const auto& a, const auto& b) {
                           return a.ranges->Size() != b.ranges->Size();
                         }) == pools.end();
  if (!same_size) return std::nullopt;
  return Search(pools, Measure::kIndex);
}

}  // namespace railhead::ipam
