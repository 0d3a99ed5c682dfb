#include "ipam/store/range.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

constexpr std::uint64_t kMaxSize = std::numeric_limits<std::uint64_t>::max();
// An error message shows at most this many intervals.
constexpr std::size_t kShownIntervals = 4;

// Number of addresses in a range, saturating.
std::uint64_t SizeOf(const IpRange& range) {
  const auto distance = range.last.Minus(range.first);
  return distance && *distance < kMaxSize ? *distance + 1 : kMaxSize;
}

bool SameFamily(const IpAddress& a, const IpAddress& b) {
  return a.IsV4() == b.IsV4();
}

// Appends the parts of `from` outside of `hole`.
void Subtract(const IpRange& from, const IpRange& hole, std::vector<IpRange>& out) {
  if (!SameFamily(from.first, hole.first) || hole.last < from.first || from.last < hole.first) {
    out.push_back(from);
    return;
  }
  if (from.first < hole.first) out.push_back({from.first, *PreviousAddress(hole.first)});
  if (hole.last < from.last) out.push_back({hole.last.Plus(1), from.last});
}

// Sorted, with overlapping and touching ranges joined.
std::vector<IpRange> Joined(std::vector<IpRange> ranges) {
  std::ranges::sort(ranges, [](const IpRange& a, const IpRange& b) { return a.first < b.first; });
  std::vector<IpRange> joined;
  for (const IpRange& range : ranges) {
    if (!joined.empty() && (range.first <= joined.back().last || range.first == joined.back().last.Plus(1))) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

// Addresses of the subnet that no host may have.
std::vector<IpRange> ReservedOf(const IpPrefix& subnet) {
  if (subnet.length >= subnet.address.Bits() - 1) return {};
  std::vector<IpRange> reserved{{subnet.First(), subnet.First()}};
  if (subnet.address.IsV4()) reserved.push_back({subnet.Last(), subnet.Last()});
  return reserved;
}

Result<void> CheckGateway(const IpPrefix& subnet, const IpAddress& gateway) {
  const std::string what = "gateway " + gateway.ToString();
  if (!subnet.Contains(gateway)) {
    return Fail(ErrorCode::kInvalid, what + " is not in subnet " + subnet.ToString(),
                "give a gateway inside the subnet, or none");
  }
  const auto reserved = ReservedOf(subnet);
  if (subnet.address.IsV4() &&
      std::ranges::any_of(reserved, [&](const IpRange& range) { return range.Contains(gateway); })) {
    return Fail(ErrorCode::kInvalid, what + " is the network or broadcast address of " + subnet.ToString(),
                "give the address of a router");
  }
  return {};
}

Result<void> CheckSpec(const RangeSpec& spec) {
  const std::string subnet = spec.subnet.Network().ToString();
  if (spec.gateway) RH_TRY(CheckGateway(spec.subnet.Network(), *spec.gateway));
  for (const IpRange& range : spec.ranges) {
    if (!spec.subnet.Contains(range.first) || !spec.subnet.Contains(range.last)) {
      return Fail(ErrorCode::kInvalid, "range " + range.ToString() + " is not in subnet " + subnet,
                  "give first and last address inside the subnet");
    }
  }
  for (const IpRange& hole : spec.exclusions) {
    if (!SameFamily(hole.first, spec.subnet.address)) {
      return Fail(ErrorCode::kInvalid,
                  "exclude " + hole.ToString() + " is of another address family than subnet " + subnet,
                  "remove it");
    }
  }
  return {};
}

}  // namespace

std::optional<IpAddress> PreviousAddress(const IpAddress& address) {
  std::array<std::uint8_t, 16> bytes{};
  std::copy_n(address.Data(), address.Size(), bytes.begin());
  for (std::size_t i = address.Size(); i-- > 0;) {
    if (bytes[i]-- != 0) return IpAddress::FromBytes(bytes.data(), address.Size());
  }
  return std::nullopt;
}

Result<RangeSet> RangeSet::Make(const RangeSpec& spec) {
  RH_TRY(CheckSpec(spec));
  const IpPrefix subnet = spec.subnet.Network();
  std::vector<IpRange> intervals = Joined(spec.ranges);
  if (intervals.empty()) intervals.push_back({subnet.First(), subnet.Last()});

  std::vector<IpRange> holes = spec.exclusions;
  for (const IpRange& reserved : ReservedOf(subnet)) holes.push_back(reserved);
  if (spec.gateway) holes.push_back({*spec.gateway, *spec.gateway});
  for (const IpRange& hole : Joined(std::move(holes))) {
    std::vector<IpRange> left;
    left.reserve(intervals.size() + 1);
    for (const IpRange& interval : intervals) Subtract(interval, hole, left);
    intervals = std::move(left);
  }
  if (intervals.empty()) {
    return Fail(ErrorCode::kInvalid,
                "subnet " + subnet.ToString() + " has no address left to hand out after the gateway, " +
                    std::to_string(spec.exclusions.size()) + " exclusions and reserved addresses",
                "widen the range or remove exclusions");
  }
  return RangeSet(subnet, std::move(intervals));
}

std::vector<IpRange> Intersection(const std::vector<IpRange>& some, const std::vector<IpRange>& others) {
  std::vector<IpRange> common;
  for (const IpRange& one : some) {
    for (const IpRange& other : others) {
      const IpRange both{std::max(one.first, other.first), std::min(one.last, other.last)};
      if (both.first <= both.last) common.push_back(both);
    }
  }
  return common;
}

std::optional<RangeSet> RangeSet::Within(const std::vector<IpRange>& parts) const {
  std::vector<IpRange> common = Intersection(parts, intervals_);
  if (common.empty()) return std::nullopt;
  return RangeSet(subnet_, std::move(common));
}

std::uint64_t RangeSet::Size() const {
  std::uint64_t size = 0;
  for (const IpRange& interval : intervals_) {
    const std::uint64_t more = SizeOf(interval);
    size = more > kMaxSize - size ? kMaxSize : size + more;
  }
  return size;
}

bool RangeSet::Contains(const IpAddress& address) const {
  return std::ranges::any_of(intervals_, [&](const IpRange& interval) { return interval.Contains(address); });
}

std::optional<IpAddress> RangeSet::At(std::uint64_t index) const {
  for (const IpRange& interval : intervals_) {
    const std::uint64_t size = SizeOf(interval);
    if (index < size) return interval.first.Plus(index);
    index -= size;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> RangeSet::IndexOf(const IpAddress& address) const {
  std::uint64_t before = 0;
  for (const IpRange& interval : intervals_) {
    if (interval.Contains(address)) {
      const auto offset = address.Minus(interval.first);
      if (!offset || *offset > kMaxSize - before) return std::nullopt;
      return before + *offset;
    }
    const std::uint64_t size = SizeOf(interval);
    before = size > kMaxSize - before ? kMaxSize : before + size;
  }
  return std::nullopt;
}

std::string RangeSet::ToString() const {
  std::string text;
  for (std::size_t i = 0; i < intervals_.size(); ++i) {
    if (i != 0) text += ", ";
    if (i == kShownIntervals) return text + "...";
    text += intervals_[i].ToString();
  }
  return text;
}

namespace {

// The first free address of `interval`.
Result<std::optional<IpAddress>> FirstFree(const IpRange& interval, RunMap& runs) {
  const auto run = RH_TRY(RunOf(runs, interval.first));
  if (!run) return interval.first;
  if (interval.last <= run->last) return std::nullopt;
  return run->last.Plus(1);
}

}  // namespace

Result<std::optional<IpRange>> RunOf(RunMap& runs, const IpAddress& address) {
  auto run = RH_TRY(runs.AtOrBefore(address));
  if (run && !run->Contains(address)) run.reset();
  return run;
}

Result<void> Take(RunMap& runs, const IpAddress& address) {
  IpRange taken{address, address};
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
  for (IpRange interval : ranges.intervals()) {
    if (interval.last < from) continue;
    interval.first = std::max(interval.first, from);
    if (auto found = RH_TRY(FirstFree(interval, runs)); found) return found;
  }
  return std::nullopt;
}

Result<std::optional<IpAddress>> NextFree(const RangeSet& ranges, RunMap& runs,
                                          const std::optional<IpAddress>& last_allocated) {
  // The highest address of a family has none above it.
  if (last_allocated && *last_allocated < last_allocated->Plus(1)) {
    if (auto found = RH_TRY(FirstFreeFrom(ranges, runs, last_allocated->Plus(1))); found) return found;
  }
  for (const IpRange& interval : ranges.intervals()) {
    if (auto found = RH_TRY(FirstFree(interval, runs)); found) return found;
    if (last_allocated && *last_allocated < interval.first) break;
  }
  return std::nullopt;
}

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
