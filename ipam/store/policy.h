// Which address comes next, and what is taken.
//
// Order: the address after the last one handed out, wrapping at the end; never
// lowest-first. An address that was released a moment ago is so the last to
// come back, and the caches of switches and peers have the longest time to
// forget its former owner.
//
// What is taken is kept as maximal runs of consecutive addresses (whether
// allocated or resting does not matter here). So the next free address costs
// one look-up per interval of the pool's ranges, however many addresses are
// taken: the address after a run is free by definition. Taking and freeing an
// address costs a constant number of look-ups. Runs know nothing of ranges and
// exclusions: those may change with every configuration.
// Errors: those of the RunMap, passed through; kInternal when the runs contradict
// what is asked of them (a damaged store).
// Threads: none of its own; as the RunMap.
#pragma once

#include <optional>
#include <vector>

#include "ipam/store/range.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead {

// The ordered map first -> last that keeps the runs of one pool.
class RunMap {
 public:
  RunMap() = default;
  RunMap(const RunMap&) = delete;
  RunMap& operator=(const RunMap&) = delete;
  virtual ~RunMap() = default;

  // The run with the highest first address <= `address`.
  [[nodiscard]] virtual Result<std::optional<AddressRange>> AtOrBefore(const IpAddress& address) = 0;
  // Adds a run or replaces the one with the same first address.
  virtual Result<void> Put(const AddressRange& run) = 0;
  virtual Result<void> Erase(const IpAddress& first) = 0;
};

// The run that `address` is in.
Result<std::optional<AddressRange>> RunOf(RunMap& runs, const IpAddress& address);

// Marks a free address as taken, or a taken one as free.
Result<void> Take(RunMap& runs, const IpAddress& address);
Result<void> Free(RunMap& runs, const IpAddress& address);

// The lowest free address of `ranges` that is not below `from`; nullopt when there is none.
Result<std::optional<IpAddress>> FirstFreeFrom(const RangeSet& ranges, RunMap& runs, const IpAddress& from);

// The first free address of `ranges` above `last_given`, else from the start;
// nullopt when all are taken. Without `last_given`: from the start.
Result<std::optional<IpAddress>> NextFree(const RangeSet& ranges, RunMap& runs,
                                          const std::optional<IpAddress>& last_given);

// Addresses of several pools with the same host part: a pod's rails read 10.100.0.17,
// 10.101.0.17, 10.102.0.17.
//
// Looked for is the first host part above the last one that any of the pools has given,
// wrapping, that is free in all of them: so each pool goes on in its own order and passes over
// what another one lacks. Where there is none and the pools have equally many
// addresses, the same is tried by index: ranges that differ from rail to rail then keep step.
// Cost: a bounded number of look-ups in the runs for each pool, however many addresses
// there are and however many of them are taken; past the bound the answer is "none".
// Errors: those of the RunMaps. Threads: none of its own; as the RunMaps.

struct AlignedPool {
  const RangeSet* ranges = nullptr;
  RunMap* runs = nullptr;
  std::optional<IpAddress> last_given;
};

// One address of each pool, all free; nullopt when none are alike. Pools of one family, each a
// subnet of its own.
Result<std::optional<std::vector<IpAddress>>> NextAligned(const std::vector<AlignedPool>& pools);

}  // namespace railhead
