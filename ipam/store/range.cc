#include "ipam/store/range.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

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
  if (from.first < hole.first) out.push_back({from.first, *hole.first.Previous()});
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

}  // namespace railhead::ipam
