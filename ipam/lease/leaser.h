// Leaser: leases blocks of the rails' subnets for this node, and keeps them.
//
// Step() does the work that is due at the given time. That is at most a few dozen requests to the cluster
// store, one after the other, and short transactions on the local lease state. It has no thread and no clock:
// its caller calls it again after `wait`, or earlier when addresses were allocated or released. After a kill
// at any point it continues from the local lease state.
//
// Guarantee (node_heartbeat.h, block_check.h and BlockAllocator below say why): no two nodes allocate the
// same address. Requests may be lost, delayed or unanswered; nodes and stores may be killed, rebooted, cut
// off, copied or put back to an earlier state. There are two exceptions. First, a node may be cut off for
// longer than reclaimSeconds. It then allocates nothing, but its pods may still use addresses that others
// get. Second, the cluster store may be restored from a backup. Each node that has allocated blocks since the
// backup must then reach it within renewSeconds: later, another node may lease them.
//
// Ownership: borrows cluster store and lease state. Threads: one.
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
#include "ipam/lease/node_heartbeat.h"

namespace railhead::ipam {

// BlockAllocator: allocates more blocks while a pool has too few free addresses.
//
// The allocator writes a new block to the local lease state, then lists it in the node's record, and only
// then creates it. After a kill or a cut connection the node therefore finds the block again. A node that
// reclaims the blocks of a dead node finds it, too. The block is provisional for two renewSeconds, and at
// least until the node's record was written once more. A copy of the cluster store that has that record has
// the block as well.
// Errors: as ClusterStore and LeaseStateStore; a full pool is an event, once, and tried again later.
// Threads: none.

class BlockAllocator {
 public:
  BlockAllocator(LeaseContext& context, NodeHeartbeat& heartbeat, BlockCheck& check)
      : context_(context), heartbeat_(heartbeat), check_(check) {}

  // Blocks that the step before allocated are provisional from now on.
  Result<void> StartProvisional();
  // Makes blocks usable whose provisional time is over.
  Result<void> Confirm();
  // `free`: addresses of the usable blocks, by pool.
  Result<void> Allocate(const std::map<std::string, std::uint64_t>& free);
  // When the next provisional time is over, or a full pool is tried again; by CLOCK_BOOTTIME.
  [[nodiscard]] std::optional<std::uint64_t> next_ms() const;

 private:
  struct Search {
    std::optional<std::uint64_t> from;   // the next block to try
    std::optional<std::uint64_t> begin;  // where the present search has begun
    bool wrapped = false;
    bool layout_known = false;
    std::uint64_t not_before_ms = 0;
    std::string reported;  // the last reported reason
  };

  [[nodiscard]] bool IsProvisionalTimeOver(const NodeBlock& block) const;
  Result<void> ConfirmOne(const NodeBlock& block);
  Result<void> StartAllocation(const PoolLayout& layout);
  [[nodiscard]] std::optional<std::uint64_t> NextUnknown(const PoolLayout& layout, std::uint64_t from) const;
  Result<std::optional<std::uint64_t>> FirstGap(const PoolLayout& layout, std::uint64_t from, bool* unsure);
  Result<std::optional<std::uint64_t>> FindFree(const PoolLayout& layout, Search& search);
  void ReportPoolFull(const PoolLayout& layout, Search& search);
  Result<void> CreateRecords();
  Result<void> CreateRecord(NodeBlock block);
  Result<void> Abandon(const NodeBlock& block, const std::string& why);
  void Postpone(Search& search, LeaseEvent why);

  LeaseContext& context_;
  NodeHeartbeat& heartbeat_;
  BlockCheck& check_;
  std::map<std::string, Search> searches_;   // by pool
  std::map<BlockName, LeaseEntry> created_;  // as last seen
};

// BlockReturner: returns blocks that a node does not need to the cluster.
//
// One transaction finds all addresses of a block free and marks it in the local lease state. From then on no
// address of the block is allocated. Then the returner removes its record from the cluster store, and then
// from the local state. After a kill at any point the next step continues.
// Orphaned blocks, those of before the node lost its store, are returned after a restart of the machine, or
// after reclaimSeconds. A lost block is erased when none of its addresses is in use here.
// Errors: as ClusterStore and LeaseStateStore. Threads: none.

class BlockReturner {
 public:
  explicit BlockReturner(LeaseContext& context) : context_(context) {}

  // How many addresses of the usable blocks are free, by pool.
  Result<void> CountFree();
  [[nodiscard]] const std::map<std::string, std::uint64_t>& free() const { return free_; }

  // Marks the blocks that are not needed, and returns the marked ones.
  Result<void> Run();

 private:
  Result<void> RetireEmpty();
  Result<void> RetireOrphaned();
  Result<void> EraseLost();
  Result<void> ReturnBlock(const NodeBlock& block);
  Result<bool> Retire(const NodeBlock& block);

  LeaseContext& context_;
  std::map<BlockName, std::uint64_t> in_use_;
  std::map<std::string, std::uint64_t> free_;
};

struct LeaseStatus {
  std::map<std::pair<std::string, BlockState>, std::uint64_t> blocks;  // by pool and state
  std::map<std::string, std::uint64_t> free;                           // addresses of usable blocks
  std::optional<std::uint64_t> since_renewal_ms;                       // nullopt: not in this boot
  bool fenced = true;                                                  // no address is allocated
  std::uint64_t store_requests = 0;
  std::uint64_t failures = 0;
};

class Leaser {
 public:
  Leaser(LeaseSettings settings, ClusterStore& cluster, LeaseStateStore& lease_state, LeaseRandom random);
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
  NodeHeartbeat heartbeat_;
  BlockCheck check_;
  BlockAllocator allocator_;
  BlockReturner returner_;
  DeadNodes dead_nodes_;
  std::uint64_t not_before_ms_ = 0;  // after a failure
  std::string boot_id_;
  int failures_in_a_row_ = 0;
  std::uint64_t failed_steps_ = 0;
};

}  // namespace railhead::ipam
