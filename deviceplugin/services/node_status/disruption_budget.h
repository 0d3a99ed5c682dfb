// How many nodes of a cluster may be out of use at once.
//
// Whoever can forge the answers to probes on many nodes must not be able to take all of them out of use. The
// budget has as many places as nodes may be out, one record of the cluster's store each, and a node takes a
// place before it acts: no two nodes get the same one. A place of a node that leases no addresses any more
// (ipam/lease/node_sign.h) is free again.
//
// The records are blocks of a pool that no rail can have, so that stores, their lists and the rules of who
// may write what are the same (manifests/components/kubernetes-store). Ownership: borrows the store. Threads:
// one. Errors: the store's; what was known stays true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ipam/lease/cluster_store.h"
#include "netns/base/result.h"

namespace railhead::node_status {

// fabric.json's isolation.maxUnavailable, as Kubernetes has it: a number of nodes, or a percentage of them.
struct MaxUnavailable {
  int nodes = 0;  // 0: `percent` is meant
  int percent = 10;

  // Of a cluster of that many; at least one.
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

  // Whether this node has a place, or could get one. `nodes`: how many the fabric names; 0: those that lease
  // addresses are counted.
  Result<bool> Take(const MaxUnavailable& limit, std::uint64_t nodes);
  // Gives back what this node has.
  Result<void> Give();
  // As seen by the latest Take() or Give().
  [[nodiscard]] const std::optional<Usage>& usage() const { return usage_; }

 private:
  struct Places;
  Result<Places> Look();
  // A removal that was given up may still arrive: it is of the record as it was.
  Result<bool> Keep(const Places& places);
  Result<std::uint64_t> CountNodes();
  // The place of a node that is gone, free again; false: there is none among those looked at.
  Result<bool> FreeOne(const Places& places);

  ipam::ClusterStore& store_;
  const std::string node_;
  const Pick pick_;
  bool kept_ = false;  // no request is on its way that could take the place away
  std::optional<Usage> usage_;
  std::optional<std::uint64_t> counted_;
  int takes_until_count_ = 0;
};

}  // namespace railhead::node_status
