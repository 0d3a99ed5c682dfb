// Leaser: leases blocks of the rails' subnets for this node, and keeps them.
//
// Step() does what is to be done by the given time: at most a few dozen requests to the cluster
// store, one after the other, and short transactions on the node's book. It has no thread and
// no clock: its caller calls it again after `wait`, or earlier when addresses were handed out
// or released. Killed anywhere, it goes on from the book.
//
// What holds (ipam/lease/node_sign.h, block_check.h, claims.h, returns.h, dead_nodes.h say why):
// no address is handed out by two nodes, whatever requests are lost, delayed or made without an
// answer, whatever is killed, rebooted, cut off, copied or put back to an earlier state, with
// two exceptions. A node that is cut off for longer than reclaimSeconds hands out nothing any
// more, but what runs on it may still use addresses that others get. And when the cluster store
// is restored from a backup, each node that has claimed blocks since must reach it within
// renewSeconds: later, it may find them leased by another.
//
// Ownership: borrows cluster store and book. Threads: one.
// Errors: a step that failed says so and comes again later, with growing pauses.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipam/lease/block_check.h"
#include "ipam/lease/claims.h"
#include "ipam/lease/context.h"
#include "ipam/lease/dead_nodes.h"
#include "ipam/lease/node_sign.h"

namespace railhead {

struct LeaseStatus {
  std::map<std::pair<std::string, BlockState>, std::uint64_t> blocks;  // by pool and state
  std::map<std::string, std::uint64_t> free;                           // addresses of usable blocks
  std::optional<std::uint64_t> since_renewal_ms;                       // nullopt: not in this boot
  bool fenced = true;                                                  // nothing is handed out
  std::uint64_t store_calls = 0;
  std::uint64_t failed_steps = 0;
};

class Leaser {
 public:
  Leaser(LeaseSettings settings, ClusterStore& cluster, NodeBook& book, LeaseRandom random);
  Leaser(const Leaser&) = delete;
  Leaser& operator=(const Leaser&) = delete;

  struct Outcome {
    std::chrono::milliseconds wait{0};
    std::vector<LeaseEvent> events;
    std::optional<Error> problem;
  };
  Outcome Step(const ClockReading& now);

  [[nodiscard]] LeaseStatus Status(const ClockReading& now) const;

 private:
  Result<void> Work();
  [[nodiscard]] std::chrono::milliseconds Pause();
  [[nodiscard]] std::chrono::milliseconds UntilNext();

  LeaseContext context_;
  NodeSign sign_;
  BlockCheck check_;
  Claims claims_;
  Returns returns_;
  DeadNodes dead_nodes_;
  std::uint64_t not_before_ms_ = 0;  // after a failure
  std::string boot_id_;
  int failures_in_a_row_ = 0;
  std::uint64_t failed_steps_ = 0;
};

}  // namespace railhead
