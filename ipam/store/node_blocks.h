// What a node keeps of the blocks that it leases, in its address store: so the plugin
// knows within its own transaction what it may hand out, and asks nobody.
//
//   lease (node)      'B'                     -> NodeLease
//   block             'B' pool NUL index      -> NodeBlock
//
// railheadd alone writes these (ipam/lease/leaser.h). Nothing of a block is handed out
// - before the cluster store has been asked in this boot: a disk that was put back to an
//   earlier state, or copied, looks like any other until then,
// - after `fence_ms` without an answer of the cluster store: others may take the block when
//   they have seen no sign of life for much longer.
// - when the machine stood still for more than a quarter of `reclaim_ms` since the answer, until the next
// one. All is measured by CLOCK_BOOTTIME, from before the request was sent. That clock stands still with a
// virtual machine that is paused, and others count on: what the wall clock is ahead tells. It can be set,
// which costs one answer. Errors: as LmdbTxn; kIo for damaged records; LeasedRanges(): kBusy, "try again
// later". Threads: none; within the caller's transaction.
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
  kClaiming = 1,   // asked for; whether it was given is to be found out
  kProbation = 2,  // ours, unless somebody had it before the cluster store was restored
  kUsable = 3,
  kReturning = 4,  // nothing of it is in use and nothing more is given: to be removed there
  kFormer = 5,     // had by this node before it lost its store: what is in use, it cannot know
  kLost = 6,       // another node has it
};
std::string_view NameOf(BlockState state);

struct NodeBlock {
  std::string pool;
  std::uint64_t index = 0;
  IpRange range;
  BlockState state = BlockState::kClaiming;
  std::string instance;         // of this node, in the block's record
  std::string nonce;            // of that record
  std::string boot_id;          // of since_ms
  std::uint64_t since_ms = 0;   // CLOCK_BOOTTIME when the state began
  std::uint64_t seen_with = 0;  // NodeLease::counter when it was claimed

  bool operator==(const NodeBlock&) const = default;
};

// Who this node is to the cluster store, and when that last answered.
struct NodeLease {
  std::string node;
  std::string machine;        // tells a copied disk from the one it was copied from
  std::string instance;       // made at random; another one where blocks are not ours for sure
  std::string previous;       // the instance before; blocks may still name it
  std::string session;        // of the daemon that writes the node's record
  std::string known_session;  // the last one that the record was seen with
  std::uint64_t counter = 0;  // of the last node record that was written for sure
  bool checking = false;      // the cluster store is not as we left it: see what is ours
  std::string boot_id;        // of renewed_ms; empty: never renewed
  std::uint64_t renewed_ms = 0;
  std::uint64_t fence_ms = 0;
  std::int64_t renewed_wall_seconds = 0;  // CLOCK_REALTIME of renewed_ms; 0: an older version wrote it
  std::uint64_t reclaim_ms = 0;           // 0: others never take blocks

  // How much further the wall clock is than CLOCK_BOOTTIME since the renewal, in milliseconds, where that is
  // so much that others can be about to take blocks; else 0.
  [[nodiscard]] std::uint64_t StoodStillMs(const ClockReading& now) const;
  // Whether blocks may be handed out from; else why not.
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

// The part of the pool's ranges that is in usable blocks.
Result<RangeSet> LeasedRanges(const LmdbTxn& txn, const AddressPool& pool, const ClockReading& now);

}  // namespace railhead::ipam
