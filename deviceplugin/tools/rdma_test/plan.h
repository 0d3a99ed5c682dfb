// Plans which ends are tested against which, on which rails, from the command line and the journal.
//
// The command line names an end in one of these forms.
//
//   host               this network namespace
//   /PATH              a network namespace
//   CONTAINER          the id of a container that the journal has; railctl finds it by any name of a pod
//   ADDRESS:PORT       `railctl rdma-test --listen ADDRESS:PORT` on another node
//
// An end on this node may have @DEVICE, which names the RDMA device.
// Threads: pure functions. Errors: kInvalid, kNotFound.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::rdma_test {

// The known facts of an end on one rail. Each may be missing.
struct RailEnd {
  std::string rail;
  std::string device;
  std::optional<int> gid_index;
  std::optional<int> traffic_class;
  std::optional<int> service_level;
  std::optional<IpAddress> address;
};

struct TestEnd {
  std::string name;            // as the command line has it
  std::string netns;           // path; empty: this namespace, or another node
  std::string remote;          // ADDRESS:PORT; empty: on this node
  std::vector<RailEnd> rails;  // from the journal; empty: it has no record of this end
};

// `netns_inode`: of the namespace at the path, if it could be read.
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

// The listening end's settings for a peer that requests `rail`.
Result<RailEnd> RailOf(const TestEnd& end, const std::string& rail, const PlanOptions& options);

}  // namespace railhead::rdma_test
