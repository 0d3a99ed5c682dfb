// The local lease state of a node, in its address store. So the plugin knows within its own transaction which
// addresses it may allocate, without any request.
//
//   lease (node)      'B'                     -> NodeLease
//   block             'B' pool NUL index      -> NodeBlock
//
// Only railheadd writes these (ipam/lease/leaser.h). No address of a block is allocated in three cases.
//   Before the cluster store has answered in this boot. Until then a disk that was put back to an earlier
//     state, or copied, cannot be recognized.
//   After `fence_ms` without an answer of the cluster store. Others may reclaim the block when they have
//     seen no heartbeat for much longer.
//   From a pause of the machine for more than a quarter of `reclaim_ms` since the last answer to the next
//   one.
//
// All times are CLOCK_BOOTTIME, from before the request was sent. That clock stops while a virtual machine is
// paused, and the clocks of others run on: the wall clock is ahead then. A wall clock that was set has the
// same effect, and costs one answer.
// Errors: as LmdbTxn; kIo for damaged records; LeasedRanges(): kBusy, "try again later".
// Threads: none; within the caller's transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipam/store/address_record.h"
#include "ipam/store/lmdb.h"
#include "ipam/store/range.h"
#include "netns/base/result.h"

namespace railhead::ipam {

struct AddressPool;

enum class BlockState : std::uint8_t {
  kAllocating = 1,   // requested; the result is not known yet
  kProvisional = 2,  // ours, unless another node had it before the cluster store was restored
  kUsable = 3,
  kReturning = 4,  // none of its addresses is in use or will be: to be removed from the cluster store
  kOrphaned = 5,   // of before this node lost its store: its addresses may be in use, unknown to the node
  kLost = 6,       // another node has it
};
std::string_view NameOf(BlockState state);

struct NodeBlock {
  std::string pool;
  std::uint64_t index = 0;
  IpRange range;
  BlockState state = BlockState::kAllocating;
  std::string instance;            // of this node, in the block's record
  std::string nonce;               // of that record
  std::string boot_id;             // of since_ms
  std::uint64_t since_ms = 0;      // CLOCK_BOOTTIME when the state began
  std::uint64_t allocated_at = 0;  // NodeLease::counter of its allocation

  bool operator==(const NodeBlock&) const = default;
};

// This node's identity in the cluster store, and the time of the store's last answer.
struct NodeLease {
  std::string node;
  std::string machine;        // tells a copied disk from the one it was copied from
  std::string instance;       // random; a new one when it is not sure that our blocks are still ours
  std::string previous;       // the instance before; blocks may still name it
  std::string session;        // of the daemon that writes the node's record
  std::string known_session;  // the last one that the record was seen with
  std::uint64_t counter = 0;  // of the last node record that is known to be written
  bool checking = false;      // the cluster store has changed without us: check our blocks
  std::string boot_id;        // of renewed_ms; empty: never renewed
  std::uint64_t renewed_ms = 0;
  std::uint64_t fence_ms = 0;
  std::int64_t renewed_wall_seconds = 0;  // CLOCK_REALTIME of renewed_ms; 0: an older version wrote it
  std::uint64_t reclaim_ms = 0;           // 0: others never reclaim blocks

  // By how many milliseconds the wall clock ran ahead of CLOCK_BOOTTIME since the renewal. The result is 0
  // unless others may be about to reclaim blocks for that reason.
  [[nodiscard]] std::uint64_t PausedMs(const ClockReading& now) const;
  // Whether addresses of the blocks may be allocated; else why not.
  [[nodiscard]] Result<void> CheckValid(const ClockReading& now) const;
  bool operator==(const NodeLease&) const = default;
};

Result<std::optional<NodeLease>> ReadNodeLease(const LmdbTxn& txn);
Result<void> WriteNodeLease(LmdbTxn& txn, const NodeLease& lease);

// Of one pool, or of all, in their order.
Result<std::vector<NodeBlock>> ReadNodeBlocks(const LmdbTxn& txn, std::string_view pool);
Result<std::vector<NodeBlock>> ReadAllNodeBlocks(const LmdbTxn& txn);
Result<void> WriteNodeBlock(LmdbTxn& txn, const NodeBlock& block);
Result<void> EraseNodeBlock(LmdbTxn& txn, std::string_view pool, std::uint64_t index);

// The part of the pool's ranges that usable blocks cover.
Result<RangeSet> LeasedRanges(const LmdbTxn& txn, const AddressPool& pool, const ClockReading& now);

}  // namespace railhead::ipam
