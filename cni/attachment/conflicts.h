// Which answers to ADD's address probes are conflicts.
//
// A station with one or two addresses of a rail is a host: its address is in use. A station that claims more
// answers for whatever is asked: a pod that attacks, or a router's proxy ARP. If that were a conflict each
// time, one such pod would stop every ADD of its VLAN. So its claims are ignored and reported. Stations are
// told apart by the frame's source (AddressConflict::source), for each address family alone: a host has an
// address of each. Threads: a pure function.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "cni/state/tenants.h"
#include "netns/base/addresses.h"
#include "netns/packet/conflict.h"

namespace railhead::attachment {

inline constexpr std::size_t kMostAddressesOfStation = 2;
// For how long a claim counts.
inline constexpr std::chrono::hours kClaimCounts{1};
// Between two claims of an address by one station that confirm each other.
inline constexpr std::chrono::seconds kClaimConfirms{60};

struct ConflictVerdict {
  std::vector<AddressConflict> conflicts;
  std::vector<IpAddress> confirmed;  // of those: the same station claimed it at an earlier time, too
  std::vector<AddressConflict> ignored;
};

// `earlier`: of this boot; `now`: as RivalClaim::boottime.
ConflictVerdict JudgeConflicts(const std::vector<AddressConflict>& found,
                               const std::vector<RivalClaim>& earlier, std::chrono::milliseconds now);

}  // namespace railhead::attachment
