// BlockCheck: compares the node's local lease state with the cluster store.
//
// Runs while the lease says `checking`. Then the store was restored to an earlier state, the node's disk was
// lost, or the node was silent for too long. After such a silence others begin to reclaim its blocks. A block
// that the store lacks is created again. If another node holds one of our blocks only provisionally, we
// overwrite its record. That node then abandons the allocation. If another node leases a block, the block is
// lost. No address of a lost block is allocated unless that node returns it. A lost block with addresses in
// use here is checked again after each renewal. The other node's record may itself come from a restored
// store, and that node removes it then.
// Errors: as ClusterStore and LeaseStateStore; kBusy when a record has changed in between (try again at
// once).
// Threads: none.
#pragma once

#include <set>
#include <string>

#include "ipam/lease/context.h"

namespace railhead::ipam {

class BlockCheck {
 public:
  explicit BlockCheck(LeaseContext& context) : context_(context) {}

  // Checks some of the blocks. Returns true when all are checked, and the lease no longer says `checking`.
  Result<bool> Run();
  // After each renewal.
  Result<void> RecheckLost();
  // Creates the pool's layout if the cluster has none. kConflict when the cluster's layout differs from ours.
  // `insist`: ours is in use, so it replaces another one, which came with a restore.
  Result<void> CheckLayout(const PoolLayout& layout, bool insist);

 private:
  Result<void> CheckLayouts();
  Result<void> CheckOne(const NodeBlock& block);
  Result<void> RestoreMissing(NodeBlock block);
  Result<void> CheckOwn(NodeBlock block, const LeaseEntry& entry, const BlockRecord& record);
  Result<void> CheckForeign(NodeBlock block, const LeaseEntry& entry, const BlockRecord& record);
  Result<void> MarkLost(const NodeBlock& block, const BlockRecord& record);
  Result<void> Keep(NodeBlock block, BlockState state);

  LeaseContext& context_;
  std::set<BlockName> done_;
  std::string round_;  // the instance that done_ is of
  bool layouts_done_ = false;
  std::uint64_t lost_checked_ = 0;  // counter of the renewal
};

}  // namespace railhead::ipam
