// Which ends are tested against which, on which rails: out of the command line and the journal.
//
// An end is said as
//   host               this network namespace
//   /PATH              a network namespace
//   CONTAINER          a container id (or the first letters of one), NAMESPACE/NAME or uid of a pod
//                      that the journal knows
//   ADDRESS:PORT       `railctl rdma-test --listen ADDRESS:PORT` on another node
// each of this node's with @DEVICE to name the RDMA device.
// Threads: pure functions. Errors: kInvalid, kNotFound.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/verbs/device.h"

namespace railhead::rdma_test {

// What is known of an end on one rail. Nothing of it has to be.
struct RailEnd {
  std::string rail;
  std::string device;
  std::optional<int> gid_index;
  std::optional<int> traffic_class;
  std::optional<int> service_level;
  std::optional<IpAddress> address;
};

struct TestEnd {
  std::string name;            // as it was said
  std::string netns;           // path; empty: this namespace, or another node
  std::string remote;          // ADDRESS:PORT; empty: on this node
  std::vector<RailEnd> rails;  // as the journal has them; empty: it knows nothing of this end
};

// `netns_inode`: of the namespace that a path names, if it could be looked at.
Result<TestEnd> ResolveEnd(const std::string& said, const std::vector<JournalEntry>& journal,
                           std::optional<std::uint64_t> netns_inode);

struct PlanOptions {
  std::string rail;    // empty: all
  std::string device;  // of the only end on this node
  std::optional<int> gid_index;
  std::optional<int> traffic_class;
  std::optional<int> service_level;
  bool both_ways = false;
};

struct PlannedTest {
  std::size_t from = 0;  // indices of the ends; `from` is on this node and writes
  std::size_t to = 0;
  RailEnd from_rail;
  RailEnd to_rail;
};

inline constexpr std::size_t kMaxTests = 4096;

// Each end with each other, rail by rail.
Result<std::vector<PlannedTest>> PlanTests(const std::vector<TestEnd>& ends, const PlanOptions& options);

// What a listening end uses for who asks for `rail`.
Result<RailEnd> RailOf(const TestEnd& end, const std::string& rail, const PlanOptions& options);

// Which device and which GID an end uses.
//
// What the journal says of a pod's rail, and what the command line says instead, are taken as they
// are. Otherwise: a RoCE v2 entry whose address an interface of this network namespace has (in
// shared RDMA mode devices of others are visible, too), in the subnet of the other end if there is
// one, IPv4 first, the lowest index.
// Runs in the end's own process and network namespace. Threads: one.
// Errors: kNotFound, kConflict when nothing tells which of several devices is meant, kUnavailable
// for a port that is not ACTIVE.

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
