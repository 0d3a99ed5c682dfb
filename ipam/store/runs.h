// Which address comes next, and which addresses are taken.
//
// Order: the address after the last one handed out, wrapping at the end; never lowest-first. So an address
// that was just released is the last to come back. The caches of switches and peers then have the longest
// time to forget its former owner.
//
// Taken addresses are kept as maximal runs of consecutive addresses, whether held or cooling down. The
// address after a run is free by definition. So the next free address costs one look-up per interval of the
// pool's ranges, however many addresses are taken. Taking and freeing an address costs a constant number of
// look-ups. Runs know nothing of ranges and exclusions: those may change with every configuration.
// Errors: those of the RunMap, passed through; kInternal when the runs contradict the call (a damaged store).
// Threads: none of its own; as the RunMap.
#pragma once

#include <optional>

#include "ipam/store/range.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

// The ordered map first -> last that keeps the runs of one pool.
class RunMap {
 public:
  RunMap() = default;
  RunMap(const RunMap&) = delete;
  RunMap& operator=(const RunMap&) = delete;
  virtual ~RunMap() = default;

  // The run with the highest first address <= `address`.
  [[nodiscard]] virtual Result<std::optional<IpRange>> AtOrBefore(const IpAddress& address) = 0;
  // Adds a run or replaces the one with the same first address.
  virtual Result<void> Put(const IpRange& run) = 0;
  virtual Result<void> Erase(const IpAddress& first) = 0;
};

// The run that `address` is in.
Result<std::optional<IpRange>> RunOf(RunMap& runs, const IpAddress& address);

// Marks a free address as taken, or a taken one as free.
Result<void> Take(RunMap& runs, const IpAddress& address);
Result<void> Free(RunMap& runs, const IpAddress& address);

// The lowest free address of `ranges` that is not below `from`; nullopt when all are taken.
Result<std::optional<IpAddress>> FirstFreeFrom(const RangeSet& ranges, RunMap& runs, const IpAddress& from);

// The first free address of `ranges` above `last_allocated`, else from the start;
// nullopt when all are taken. Without `last_allocated`: from the start.
Result<std::optional<IpAddress>> NextFree(const RangeSet& ranges, RunMap& runs,
                                          const std::optional<IpAddress>& last_allocated);

}  // namespace railhead::ipam
