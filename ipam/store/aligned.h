// Addresses of several pools with the same host part: a pod's rails read 10.100.0.17, 10.101.0.17,
// 10.102.0.17.
//
// The search starts above the last host part that any of the pools has allocated, and wraps. The result is
// the first host part that is free in all of them. So each pool goes on in its own order and passes over the
// addresses that another one lacks. Without such a host part, and if the pools have equally many addresses,
// the search compares indices. Ranges that differ from rail to rail then keep step.
// Cost: a bounded number of look-ups in the runs for each pool, whatever the number of addresses, free or
// taken. Past the bound the answer is "none".
// Errors: those of the RunMaps. Threads: none of its own; as the RunMaps.
#pragma once

#include <optional>
#include <vector>

#include "ipam/store/range.h"
#include "ipam/store/runs.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AlignedPool {
  const RangeSet* ranges = nullptr;
  RunMap* runs = nullptr;
  std::optional<IpAddress> last_allocated;
};

// One address of each pool, all free; nullopt when none are alike. Pools of one family, each a
// subnet of its own.
Result<std::optional<std::vector<IpAddress>>> NextAligned(const std::vector<AlignedPool>& pools);

}  // namespace railhead::ipam
