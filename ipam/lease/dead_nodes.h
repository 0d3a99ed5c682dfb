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
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam/lease/context.h"

namespace railhead {

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

}  // namespace railhead
