// Leaser: leases blocks of the rails' subnets for this node, and keeps them.
//
// Step() does what is to be done by the given time: at most a few dozen requests to the cluster
// store, one after the other, and short transactions on the node's book. It has no thread and
// no clock: its caller calls it again after `wait`, or earlier when addresses were handed out
// or released. Killed anywhere, it goes on from the book.
//
// What holds (node_sign.h, block_check.h and Claims below say why):
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
#include "ipam/lease/context.h"
#include "ipam/lease/node_sign.h"

namespace railhead::ipam {

// Claims: more blocks while a pool has too few free addresses.
//
// A claim is written in the node's book, then listed in the node's record, and only then made:
// killed or cut off anywhere, the node finds it again, and so does whoever takes the blocks of a
// dead node. It is on probation for two renewSeconds and at least until the node's record was
// written once more: a copy of the cluster store that has that record has the claim as well.
// Errors: as ClusterStore and NodeBook; a full pool is an event, once, and asked again later.
// Threads: none.

class Claims {
 public:
  Claims(LeaseContext& context, NodeSign& sign, BlockCheck& check)
      : context_(context), sign_(sign), check_(check) {}

  // Blocks that were claimed in the step before are on probation from now on.
  Result<void> BeginProbations();
  // Probations that are over.
  Result<void> Confirm();
  // `free`: addresses of the usable blocks, by pool.
  Result<void> Claim(const std::map<std::string, std::uint64_t>& free);
  // When the next probation is over, or a full pool is asked again; by CLOCK_BOOTTIME.
  [[nodiscard]] std::optional<std::uint64_t> next_ms() const;

 private:
  struct Search {
    std::optional<std::uint64_t> from;   // the next block to look at
    std::optional<std::uint64_t> begin;  // where the search that goes on has begun
    bool wrapped = false;
    bool layout_known = false;
    std::uint64_t not_before_ms = 0;
    std::string told;  // why there is no block
  };

  [[nodiscard]] bool IsOver(const NodeBlock& block) const;
  Result<void> ConfirmOne(const NodeBlock& block);
  Result<void> Want(const PoolLayout& layout);
  [[nodiscard]] std::optional<std::uint64_t> NextUnknown(const PoolLayout& layout, std::uint64_t from) const;
  Result<std::optional<std::uint64_t>> FirstGap(const PoolLayout& layout, std::uint64_t from, bool* unsure);
  Result<std::optional<std::uint64_t>> FindFree(const PoolLayout& layout, Search& search);
  void PoolFull(const PoolLayout& layout, Search& search);
  Result<void> Make();
  Result<void> MakeOne(NodeBlock block);
  Result<void> GiveUp(const NodeBlock& block, const std::string& why);
  void PutOff(Search& search, LeaseEvent why);

  LeaseContext& context_;
  NodeSign& sign_;
  BlockCheck& check_;
  std::map<std::string, Search> searches_;   // by pool
  std::map<BlockName, LeaseEntry> claimed_;  // as last seen
};

// Returns: blocks that a node does not need go back to the cluster.
//
// A block is marked in the book first, in the same transaction that sees that no address of it
// is held or resting; from then on nothing of it is handed out. Then its record is removed from
// the cluster store, and then it is forgotten: killed anywhere, the next step goes on.
// What this node had before it lost its store is given back when the machine was restarted since,
// or after reclaimSeconds. What another node has is forgotten when nothing of it is in use here.
// Errors: as ClusterStore and NodeBook. Threads: none.

class Returns {
 public:
  explicit Returns(LeaseContext& context) : context_(context) {}

  // How many addresses of the usable blocks are free, by pool.
  Result<void> Count();
  [[nodiscard]] const std::map<std::string, std::uint64_t>& free() const { return free_; }

  // Marks what is not needed, and gives back what is marked.
  Result<void> Run();

 private:
  Result<void> RetireEmpty();
  Result<void> RetireFormer();
  Result<void> ForgetLost();
  Result<void> GiveBack(const NodeBlock& block);
  Result<bool> Retire(const NodeBlock& block);

  LeaseContext& context_;
  std::map<BlockName, std::uint64_t> taken_;
  std::map<std::string, std::uint64_t> free_;
};

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

}  // namespace railhead::ipam
