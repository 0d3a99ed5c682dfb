// BlockCheck: whether the cluster store still says what the node's book does about its blocks.
//
// Run while the lease says `checking`: the store was restored to an earlier state, the node was
// silent for so long that others began to take its blocks, or its disk was lost. A block that is
// missing there is made again; one that another node has on probation is taken back, which
// makes that node give its claim up; one that another has as leased is lost: it is never handed
// out from again unless that node gives it back.
// A lost block with addresses in use here is looked at with each renewal: the record that took it
// from us may itself have come back with a restore, and its node removes it then.
// Errors: as ClusterStore and NodeBook; kBusy when a record changed meanwhile (again at once).
// Threads: none.
#pragma once

#include <set>
#include <string>

#include "ipam/lease/context.h"

namespace railhead::ipam {

class BlockCheck {
 public:
  explicit BlockCheck(LeaseContext& context) : context_(context) {}

  // Some of what is to be checked; true when all is, and the lease says no more `checking`.
  Result<bool> Run();
  // Once for each renewal.
  Result<void> LookAtLost();
  // The cluster's layout of a pool is ours: kConflict when it is another. Made where there is
  // none. `insist`: ours is in use, so another one, which came with a restore, gives way.
  Result<void> CheckLayout(const PoolLayout& layout, bool insist);

 private:
  Result<void> CheckLayouts();
  Result<void> CheckOne(const NodeBlock& block);
  Result<void> Missing(NodeBlock block);
  Result<void> Ours(NodeBlock block, const LeaseEntry& entry, const BlockRecord& record);
  Result<void> Others(NodeBlock block, const LeaseEntry& entry, const BlockRecord& record);
  Result<void> Lose(const NodeBlock& block, const BlockRecord& record);
  Result<void> Keep(NodeBlock block, BlockState state);

  LeaseContext& context_;
  std::set<BlockName> done_;
  std::string round_;  // the instance that done_ is of
  bool layouts_done_ = false;
  std::uint64_t lost_looked_at_ = 0;  // counter of the renewal
};

}  // namespace railhead::ipam
