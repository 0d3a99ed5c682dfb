#include "ipam/store/runs.h"

#include <algorithm>

#include "netns/base/text.h"

namespace railhead::ipam {
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
  if (run->first < address) return runs.Put({run->first, *address.Previous()});
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

}  // namespace railhead::ipam
