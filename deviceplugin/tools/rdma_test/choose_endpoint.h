// Chooses the device and the GID of an end.
//
// The journal's values of a pod's rail, and the command line's instead of them, are used unchanged. Otherwise
// it chooses a RoCE v2 entry whose address is on an interface of this network namespace. (In shared RDMA mode
// devices of other namespaces are visible, too.) If the other end has an address, the entry must be in its
// subnet. IPv4 comes before IPv6, and a low index before a high one. Runs in the end's own process and
// network namespace. Threads: one.
// Errors: kNotFound; kConflict when several devices match; kUnavailable for a port that is not ACTIVE.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/plan.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/verbs/device.h"

namespace railhead::rdma_test {

struct ChosenEndpoint {
  VerbsDevice device;
  GidEntry gid;
};

// `towards`: the other end's address, if it is known.
Result<ChosenEndpoint> ChooseEndpoint(const RailEnd& wishes, const std::optional<IpAddress>& towards);

// ---- the pure part, for tests ----
struct Candidate {
  std::string device;
  GidEntry gid;
  IpPrefix address;  // as its interface has it
};
Result<Candidate> PickCandidate(const std::vector<Candidate>& candidates,
                                const std::optional<IpAddress>& towards);

}  // namespace railhead::rdma_test
