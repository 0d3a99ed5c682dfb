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
#pragma once

#include <optional>
#include <vector>

#include "ipam/store/policy.h"
#include "ipam/store/range.h"
#include "netns/base/ip_address.h"
#include "netns/base/result.h"

namespace railhead {

struct AlignedPool {
  const RangeSet* ranges = nullptr;
  RunMap* runs = nullptr;
  std::optional<IpAddress> last_given;
};

// One address of each pool, all free; nullopt when none are alike. Pools of one family, each a
// subnet of its own.
Result<std::optional<std::vector<IpAddress>>> NextAligned(const std::vector<AlignedPool>& pools);

}  // namespace railhead
