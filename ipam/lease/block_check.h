// BlockCheck: compares the node's local lease state with the cluster store.
//
// Runs while the lease says `checking`: the store was restored to an earlier state, the node was silent for
// so long that others began to reclaim its blocks, or its disk was lost. A block that the store lacks is
// created again. If another node holds one of our blocks only provisionally, we overwrite its record. That
// node then abandons the allocation. A block that another node leases is lost: no address of it is allocated
// unless that node returns it. A lost block with addresses in use here is checked again after each renewal.
// The other node's record may itself come from a restored store, and that node removes it then. Errors: as
// ClusterStore and LeaseStateStore; kBusy when a record changed meanwhile (again at once). Threads: none.
#pragma once

#include <set>
#include <string>

#include "ipam/lease/context.h"

namespace railhead::ipam {

class BlockCheck {
 public:
  explicit BlockCheck(LeaseContext& context) : context_(context) {}

  // Checks some of the blocks; true when all are checked, and the lease does not say `checking` any more.
  Result<bool> Run();
  // After each renewal.
  Result<void> RecheckLost();
  // kConflict when the cluster's layout of a pool differs from ours. Creates it where there is none.
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
