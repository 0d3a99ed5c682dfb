// IndexDirectory: which index each node of the cluster has claimed, so that nodes can probe each other.
//
// Only for a fabric with a range in `probeAddresses` and without `nodes`. The claims are listed once, and
// then watched. The first list, and one after an error, come at a random time, later in a larger cluster. A
// node's index grows with the cluster, so the time is up to a tenth of a second for each index below its own.
//
// A node may keep the claim of a former index for some time. The claim that was made last counts.
// Memory: 3.5 MB for 10,000 nodes with names of 30 characters, and 3 MB more while they are listed.
//
// Ownership: borrows what it publishes to. Threads: one. Errors: those of ResourceWatch. What was known still
// counts then.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/node_index/index_claim.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/kubernetes/resource_watch.h"
#include "deviceplugin/support/service/published.h"
#include "netns/base/result.h"

namespace railhead::node_index {

// Whether the nodes have to know each other's claimed index.
bool NeedsDirectory(const Fabric& fabric);

class IndexDirectory final : private WatchedObjects {
 public:
  IndexDirectory(const KubeAccess& access, std::chrono::milliseconds timeout, IndexRandom random,
                 Published<NodeIndices>* published);
  ~IndexDirectory() override;

  // Takes what has changed, if the time has come. `own`: this node's index.
  Result<void> Step(std::uint64_t boottime_ms, int own);

 private:
  struct Claim {
    std::string node;
    std::string created;  // RFC 3339 in UTC: sorts by time
  };
  using Claims = std::map<std::uint64_t, Claim>;  // by index

  void BeginList() override { listing_.emplace(); }
  void EndList() override;
  void Set(const std::string& name, JsonReader object) override;
  void Remove(const std::string& name) override;
  void Publish();
  // Until the next list.
  std::uint64_t PauseMs(int own);

  ResourceWatch watch_;
  const IndexRandom random_;
  Published<NodeIndices>* const published_;
  Claims claims_;
  std::optional<Claims> listing_;  // of a list that has not ended
  bool changed_ = false;
  std::optional<std::uint64_t> next_ms_;  // by CLOCK_BOOTTIME
  int failures_ = 0;                      // in a row
};

}  // namespace railhead::node_index
