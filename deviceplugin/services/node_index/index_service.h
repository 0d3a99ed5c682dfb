// IndexService: claims this node's index in the Kubernetes API.
//
// Where `addresses.index` is from kubernetes, it claims an index and confirms it (index_claim.h), while a
// rail gives addresses by index. Each step acts by the present fabric. A node that `nodes` lists claims its
// listed index. With `nodes` and without this node in it, the node claims nothing. After a change of the
// settings, or of whether rails use indices, it begins anew, as after a restart of railheadd. Settings that
// cannot be used change nothing: it goes on by the last ones.
//
// Ownership: borrows the log and the published values. Threads: as Service.
// Errors: of Run(): kInvalid for the first settings. Later failures are logged when they differ from the one
// before, and retried.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/node_index/index_claim.h"
#include "deviceplugin/services/node_index/index_directory.h"
#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"

namespace railhead::node_index {

class IndexService : public Service {
 public:
  // `claimed` gets the indices of all nodes.
  IndexService(Root root, const Published<NodeSnapshot>& node, KubeService kubernetes,
               Published<NodeIndices>* claimed, Log* log);
  ~IndexService() override;

  [[nodiscard]] std::string_view name() const override { return "node_index"; }
  void Register(MetricRegistry& metrics) override;
  Result<void> Run(Worker& worker) override;

  // Acts by the present fabric from now on, as Run() does by itself.
  Result<void> Follow(const NodeSnapshot& node);
  // Grows with each beginning; 0: nothing was ever claimed. For tests.
  [[nodiscard]] int begun() const { return begun_; }
  [[nodiscard]] bool claims() const { return claiming_ != nullptr; }

 private:
  // What one beginning claims with.
  struct Claiming;

  [[nodiscard]] Result<std::unique_ptr<Claiming>> Begin(const NodeSnapshot& node) const;
  Result<void> TakeFirst();
  void TakeNode();
  void Step();
  Result<void> TryStep();
  // Learns the other nodes' indices, once this node has its own.
  void FollowOthers();
  void Write(const IndexClaim::Outcome& outcome);
  void Complain(const Error& problem);

  const Root root_;
  const Published<NodeSnapshot>& node_;
  const KubeService kubernetes_;
  Published<NodeIndices>* const claimed_;
  Log* const log_;
  std::shared_ptr<const NodeSnapshot> known_;  // the latest one that was followed
  std::shared_ptr<const Fabric> fabric_;       // of it
  std::string followed_;                       // what `claiming_` follows from; "": nothing is claimed
  OncePerChange refused_;                      // of following
  OncePerChange problem_;                      // of claiming
  OncePerChange directory_problem_;
  // A railheadd of an earlier version beside this one has it.
  std::optional<FileLock> lock_;
  std::unique_ptr<Claiming> claiming_;  // nullptr: nothing is claimed
  std::atomic<bool> shows_problems_{false};
  int begun_ = 0;
};

// What the fabric says of node `name`; nullopt: it claims nothing.
std::optional<IndexNeeds> IndexNeedsOf(const Fabric& fabric, const std::string& name);

// The firmware's id of the machine. /etc/machine-id is not used: a copied disk has the same one, and a
// container has its image's. Empty where only root may read the id and this process is not root.
std::string MachineId(const Root& root);

// Of all pools of the node's address store.
Result<HeldAddresses> ReadHeldAddresses(const Root& root);

}  // namespace railhead::node_index
