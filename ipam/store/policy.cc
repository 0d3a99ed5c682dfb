#include "ipam/store/policy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace railhead {
namespace {

// The first free address of `interval`.
Result<std::optional<IpAddress>> FirstFree(const AddressRange& interval, RunMap& runs) {
  const auto run = RH_TRY(RunOf(runs, interval.first));
  if (!run) return interval.first;
  if (interval.last <= run->last) return std::nullopt;
  return run->last.Plus(1);
}

}  // namespace

Result<std::optional<AddressRange>> RunOf(RunMap& runs, const IpAddress& address) {
  auto run = RH_TRY(runs.AtOrBefore(address));
  if (run && !run->Contains(address)) run.reset();
  return run;
}

Result<void> Take(RunMap& runs, const IpAddress& address) {
  AddressRange taken{address, address};
  if (const auto below = RH_TRY(runs.AtOrBefore(address)); below) {
    if (below->Contains(address)) {
      return Fail(ErrorCode::kInternal, "address " + address.ToString() + " is taken already");
    }
    if (below->last.Plus(1) == address) taken.first = below->first;
  }
  const IpAddress next = address.Plus(1);
  if (next > address) {
    if (const auto above = RH_TRY(runs.AtOrBefore(next)); above && above->first == next) {
      taken.last = above->last;
      RH_TRY(runs.Erase(next));
    }
  }
  return runs.Put(taken);
}

Result<void> Free(RunMap& runs, const IpAddress& address) {
  const auto run = RH_TRY(RunOf(runs, address));
  if (!run) return Fail(ErrorCode::kInternal, "address " + address.ToString() + " is free already");
  if (address < run->last) RH_TRY(runs.Put({address.Plus(1), run->last}));
  if (run->first < address) return runs.Put({run->first, *PreviousAddress(address)});
  return runs.Erase(address);
}

Result<std::optional<IpAddress>> FirstFreeFrom(const RangeSet& ranges, RunMap& runs, const IpAddress& from) {
  for (AddressRange interval : ranges.intervals()) {
    if (interval.last < from) continue;
    interval.first = std::max(interval.first, from);
    if (auto found = RH_TRY(FirstFree(interval, runs)); found) return found;
  }
  return std::nullopt;
}

Result<std::optional<IpAddress>> NextFree(const RangeSet& ranges, RunMap& runs,
                                          const std::optional<IpAddress>& last_given) {
  // The highest address of a family has none above it.
  if (last_given && *last_given < last_given->Plus(1)) {
    if (auto found = RH_TRY(FirstFreeFrom(ranges, runs, last_given->Plus(1))); found) return found;
  }
  for (const AddressRange& interval : ranges.intervals()) {
    if (auto found = RH_TRY(FirstFree(interval, runs)); found) return found;
    if (last_given && *last_given < interval.first) break;
  }
  return std::nullopt;
}

namespace {

// For each pool and search: enough for every pool of 48 addresses, whatever is taken of it,
// and for larger ones unless rails that are used apart have left combs of them.
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

// Behind the last position that any pool has given.
std::uint64_t StartOf(const std::vector<AlignedPool>& pools, Measure measure) {
  std::uint64_t start = 0;
  for (const AlignedPool& pool : pools) {
    if (!pool.last_given) continue;
    if (const auto last = PositionOf(*pool.ranges, *pool.last_given, measure); last && *last + 1 != 0) {
      start = std::max(start, *last + 1);
    }
  }
  return start;
}

// The lowest position >= `from` that is free in all pools. Each in turn says where it can go
// on, until all have said the same.
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
  const bool same_size = std::adjacent_find(pools.begin(), pools.end(), [](const auto& a, const auto& b) {
                           return a.ranges->Size() != b.ranges->Size();
                         }) == pools.end();
  if (!same_size) return std::nullopt;
  return Search(pools, Measure::kIndex);
}

}  // namespace railhead
