// NodeHeartbeat: this node's identity and heartbeat in the cluster store.
//
// Only its node writes a node's record, each time with a counter that is one higher. The counter tells the
// cases apart:
//   As it was written last, or as a request without answer may have written it: no problem.
//   Lower or gone: the cluster store was restored. It lacks the blocks that were allocated since.
//   Higher, or of another instance: this node's disk was wiped, put back to an earlier state, or copied.
//     Its blocks are orphaned then, and no address of them is allocated.
//   Marked by another node: this node was silent for so long that the other one reclaims its blocks.
// In all but the first case the lease says `checking`. The node renews again after BlockCheck has checked
// every block.
// Errors: as ClusterStore and LeaseStateStore. Threads: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam/lease/context.h"

namespace railhead::ipam {

class NodeHeartbeat {
 public:
  explicit NodeHeartbeat(LeaseContext& context) : context_(context) {}

  // The first call of a step; sends no request to the cluster store.
  Result<void> Load();
  [[nodiscard]] bool IsDue() const;
  // Writes the record: the node's blocks and the counter. Unless `checking`, the lease is valid
  // from this step's time on.
  Result<void> Renew();
  // Whether the record in the cluster store lists the block.
  [[nodiscard]] bool IsListed(const NodeBlock& block) const;
  // Whether no unknown writer has changed the record for some time. Two machines with one node name would
  // allocate more and more blocks otherwise.
  [[nodiscard]] bool MayAllocate() const { return renewals_to_wait_ == 0; }
  // When the next renewal is due, by CLOCK_BOOTTIME.
  [[nodiscard]] std::uint64_t next_ms() const { return next_ms_; }

 private:
  Result<void> Identify();
  Result<void> ReadRecord();
  Result<void> CompareRecord(const NodeRecord& record);
  Result<void> HandleRestore(const NodeRecord& record, const std::string& why);
  Result<void> HandleUnknownWriter(const NodeRecord& record, const std::string& why);
  [[nodiscard]] bool WrittenByUs(const NodeRecord& record) const;
  [[nodiscard]] NodeRecord NextRecord() const;
  Result<bool> WriteRecord();

  LeaseContext& context_;
  bool loaded_ = false;
  bool record_known_ = false;         // record_ is the state in the cluster store
  std::optional<LeaseEntry> record_;  // nullopt: no record
  std::map<std::string, std::vector<std::uint64_t>> listed_;
  bool changed_by_others_ = false;  // even if its content is the same
  int renewals_to_wait_ = 0;        // before the next allocation
  bool pause_reported_ = false;
  std::uint64_t next_ms_ = 0;
};

// DeadNodes: reclaims the blocks of nodes that are gone.
//
// Every node checks the few that follow it by name, several times per reclaimSeconds: one request
// each, however many nodes there are. When a dead node is removed, the check reaches the next ones. A node is
// dead when this one has seen its record unchanged for reclaimSeconds at every check. The time is that of
// this node's clock since boot: no clocks of two machines are compared. Time without an answer of the cluster
// store does not count.
// The dead node's record is marked before its blocks are removed. If the node comes back, it finds its record
// changed and becomes a new instance. Blocks of a newer instance are not reclaimed.
// Errors: as ClusterStore; a node that turns out to be alive is not an error. Threads: none.

class DeadNodes {
 public:
  explicit DeadNodes(LeaseContext& context) : context_(context) {}

  Result<void> Run();
  // Time of the next check, by CLOCK_BOOTTIME; nullopt: never.
  [[nodiscard]] std::optional<std::uint64_t> next_ms() const;

 private:
  struct Observation {
    std::string revision;
    std::uint64_t since_ms = 0;
  };
  struct Reclaim {
    LeaseEntry entry;  // the node's record, marked
    NodeRecord record;
    std::vector<BlockName> left;
    std::size_t freed = 0;
  };

  Result<void> CheckNeighbors();
  Result<std::vector<LeaseEntry>> Neighbors();
  Result<void> StartReclaim(const LeaseEntry& entry);
  Result<void> ContinueReclaim();
  Result<void> FreeOne(const BlockName& name);
  [[nodiscard]] std::uint64_t IntervalMs() const;

  LeaseContext& context_;
  std::map<std::string, Observation> observed_;  // by node
  std::optional<std::uint64_t> checked_ms_;
  std::string boot_id_;
  std::optional<Reclaim> reclaim_;
};

}  // namespace railhead::ipam
