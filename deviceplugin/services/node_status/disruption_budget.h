// DisruptionBudget: limits how many nodes of a cluster are out of use at the same time.
//
// An attacker that forges answers to probes on many nodes must not take all of them out of use. The budget
// has one place for each node that may be out, a record of the cluster store each. A node acquires a place
// before it acts, and no two nodes get the same one. If a node stops leasing addresses
// (ipam/lease/node_heartbeat.h), its place becomes free.
//
// The records are blocks of a pool that no rail can have. So stores, their lists and their access rules
// (manifests/components/kubernetes-store) need nothing else. Ownership: borrows the store. Threads: one.
// Errors: the store's; the last known usage stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ipam/lease/cluster_store.h"
#include "netns/base/result.h"

namespace railhead::node_status {

// fabric.json's nodeStatus.maxUnavailable, in the form of Kubernetes: a number of nodes, or a percentage.
struct MaxUnavailable {
  int nodes = 0;  // 0: `percent` applies
  int percent = 10;

  // For a cluster of `all` nodes; at least one.
  [[nodiscard]] std::uint64_t Of(std::uint64_t all) const;
  bool operator==(const MaxUnavailable&) const = default;
};

class DisruptionBudget {
 public:
  struct Usage {
    std::uint64_t used = 0;
    std::uint64_t limit = 0;
  };
  using Pick = std::function<std::uint64_t(std::uint64_t below)>;  // a random number

  DisruptionBudget(ipam::ClusterStore& store, std::string node, Pick pick)
      : store_(store), node_(std::move(node)), pick_(std::move(pick)) {}

  // Whether this node has a place now. `nodes`: how many the fabric names. 0: counts the nodes that lease
  // addresses.
  Result<bool> Acquire(const MaxUnavailable& limit, std::uint64_t nodes);
  // Gives this node's place back.
  Result<void> Release();
  // As seen by the latest Acquire() or Release().
  [[nodiscard]] const std::optional<Usage>& usage() const { return usage_; }

 private:
  struct Places;
  Result<Places> ReadPlaces();
  // A removal whose reply was not awaited may still arrive: it names the record's earlier version.
  Result<bool> Keep(const Places& places);
  Result<std::uint64_t> CountNodes();
  // Frees the place of a node that is gone. false: it found no such place among those that it checked.
  Result<bool> FreeOne(const Places& places);

  ipam::ClusterStore& store_;
  const std::string node_;
  const Pick pick_;
  bool kept_ = false;  // no pending request can remove the place
  std::optional<Usage> usage_;
  std::optional<std::uint64_t> counted_;
  int acquires_until_count_ = 0;
};

}  // namespace railhead::node_status
