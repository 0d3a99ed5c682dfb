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
#include <optional>
#include <string>

#include "ipam/lease/context.h"

namespace railhead {

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

}  // namespace railhead
