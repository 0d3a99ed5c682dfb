// Which device and which GID an end uses.
//
// What the journal says of a pod's rail, and what the command line says instead, are taken as they
// are. Otherwise: a RoCE v2 entry whose address an interface of this network namespace has (in
// shared RDMA mode devices of others are visible, too), in the subnet of the other end if there is
// one, IPv4 first, the lowest index.
// Runs in the end's own process and network namespace. Threads: one.
// Errors: kNotFound, kConflict when nothing tells which of several devices is meant, kUnavailable
// for a port that is not ACTIVE.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/rdma_test/plan.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/verbs/device.h"

namespace railhead::rdmatest {

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

}  // namespace railhead::rdmatest
