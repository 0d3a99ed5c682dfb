// NodeSign: who this node is to the cluster store, and its sign of life there.
//
// The node's record is written by its node alone, each time with a counter that is one
// higher. So whoever reads it finds out:
//   as it was written last, or as it may have been by a request without answer: all is well;
//   lower or gone: the cluster store was restored, blocks claimed since are not in it;
//   higher, or of another instance: this node's disk was wiped, put back to an earlier state,
//     or copied. Its blocks are former ones then, and nothing is handed out from them;
//   marked by another node: this one was silent for so long that its blocks are being taken.
// In all but the first case the lease says `checking`, and the node is not renewed before
// BlockCheck has seen to every block.
// Errors: as ClusterStore and NodeBook. Threads: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam/lease/context.h"

namespace railhead::ipam {

class NodeSign {
 public:
  explicit NodeSign(LeaseContext& context) : context_(context) {}

  // Before anything else in a step; asks the cluster nothing.
  Result<void> Begin();
  [[nodiscard]] bool Due() const;
  // Writes the record: the blocks there are, and a counter. Unless `checking`, the lease holds
  // from this step's time on.
  Result<void> Renew();
  // Whether the record, as it is in the cluster store, names the block.
  [[nodiscard]] bool Lists(const NodeBlock& block) const;
  // Nobody else has written the record for some time: blocks may be claimed. Two machines under
  // one name would claim more and more.
  [[nodiscard]] bool Undisturbed() const { return disturbed_ == 0; }
  // When the next renewal is due, by CLOCK_BOOTTIME.
  [[nodiscard]] std::uint64_t next_ms() const { return next_ms_; }

 private:
  Result<void> Identify();
  Result<void> Look();
  Result<void> Judge(const NodeRecord& record);
  Result<void> Restored(const NodeRecord& record, const std::string& why);
  Result<void> Stranger(const NodeRecord& record, const std::string& why);
  [[nodiscard]] bool WrittenByUs(const NodeRecord& record) const;
  [[nodiscard]] NodeRecord Wanted() const;
  Result<bool> Write();

  LeaseContext& context_;
  bool begun_ = false;
  bool looked_ = false;             // seen_ is how the record is
  std::optional<LeaseEntry> seen_;  // nullopt: there is none
  std::map<std::string, std::vector<std::uint64_t>> listed_;
  bool changed_by_others_ = false;  // though it may read the same
  int disturbed_ = 0;               // renewals until claims
  bool told_still_ = false;
  std::uint64_t next_ms_ = 0;
};

// DeadNodes: what nodes had that are gone for good becomes free.
//
// Every node looks at the few that follow it by name, some times per reclaimSeconds: one request
// each, however many nodes there are, and behind a dead node the next ones come into sight when
// it is gone. A node is dead when this one has seen its record unchanged for reclaimSeconds, by
// its own clock since boot, at every look of that time: no clocks of two machines are compared, and
// time during which the cluster store did not answer this one does not count.
// Its record is marked before its blocks are removed. Should it come back, it finds its record
// changed, and is a new instance before it goes on; what a newer instance has is left alone here.
// Errors: as ClusterStore; a node that turns out to live is none. Threads: none.

class DeadNodes {
 public:
  explicit DeadNodes(LeaseContext& context) : context_(context) {}

  Result<void> Run();
  // When to look again, by CLOCK_BOOTTIME; nullopt: never.
  [[nodiscard]] std::optional<std::uint64_t> next_ms() const;

 private:
  struct Seen {
    std::string revision;
    std::uint64_t since_ms = 0;
  };
  struct Taking {
    LeaseEntry entry;  // the node's record, marked
    NodeRecord record;
    std::vector<BlockName> left;
    std::size_t freed = 0;
  };

  Result<void> Look();
  Result<std::vector<LeaseEntry>> Neighbours();
  Result<void> Begin(const LeaseEntry& entry);
  Result<void> Go();
  Result<void> FreeOne(const BlockName& name);
  [[nodiscard]] std::uint64_t IntervalMs() const;

  LeaseContext& context_;
  std::map<std::string, Seen> seen_;  // by node
  std::optional<std::uint64_t> looked_ms_;
  std::string boot_id_;
  std::optional<Taking> taking_;
};

}  // namespace railhead::ipam
