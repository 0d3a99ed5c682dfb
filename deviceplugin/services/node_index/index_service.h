// The claim of this node's index as railheadd runs it: from configuration to thread and log.
//
// Where `addresses.index` is from kubernetes, a thread claims an index and confirms it (index_claim.h), while
// a rail gives addresses by index. Each step reads fabric.json again. A node that `nodes` lists claims its
// listed index. With `nodes` and without this node in it, the node claims nothing. Only one railheadd of a
// node claims at a time. During an update, the second one waits until the first has ended.
//
// Ownership: owns the store, borrows the log. Threads: thread-safe. Errors: kInvalid for the
// settings; later failures are logged and retried.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/node_index/index_claim.h"
#include "deviceplugin/services/node_index/index_directory.h"
#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/worker/worker.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"

namespace railhead::node_index {

// What the fabric says of node `name`; nullopt: it claims nothing.
std::optional<IndexNeeds> IndexNeedsOf(const Fabric& fabric, const std::string& name);

// The firmware's id of the machine. /etc/machine-id is not used: a copied disk has the same one, and a
// container has its image's. Empty where only root may read the id and this process is not root.
std::string MachineId(const Root& root);

// Of all pools of the node's address store.
Result<HeldAddresses> ReadHeldAddresses(const Root& root);

class IndexService {
 public:
  // `directory`: nullptr where nodes need not know each other's index.
  IndexService(Root root, std::string fabric_path, IndexSettings settings, std::unique_ptr<IndexStore> store,
               std::unique_ptr<IndexDirectory> directory, Log* log);
  // Ends the thread, after the pending request to the store.
  ~IndexService() { Stop(); }
  IndexService(const IndexService&) = delete;
  IndexService& operator=(const IndexService&) = delete;

  void Stop() { loop_->Stop(); }
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit) { return loop_->AwaitEnd(limit); }

 private:
  void Step();
  Result<void> TryStep();
  // Learns the other nodes' indices, once this node has its own.
  void FollowOthers();
  void Write(const IndexClaim::Outcome& outcome);
  void Complain(const Error& problem);
  void ComplainOfDirectory(const Error& problem);

  const Root root_;
  const std::string fabric_path_;
  const std::string node_;
  // Given back after the directory has taken back what it has published.
  std::optional<FileLock> lock_;
  const std::unique_ptr<IndexStore> store_;
  const std::unique_ptr<IndexDirectory> directory_;
  Log* const log_;
  IndexClaim claim_;
  std::string known_problem_;
  std::string directory_problem_;
  std::unique_ptr<PassLoop> loop_;  // last: it uses all of the others
};

// nullptr: no node claims an index, or fabric.json does not exist.
Result<std::unique_ptr<IndexService>> StartIndexService(const Root& root, const std::string& fabric_path,
                                                        const KubeService& service,
                                                        Published<NodeIndices>* claimed, Log* log);

// Claims as the fabric says now. After a change of the settings, or of whether rails use indices, another
// service takes over, as after a restart of railheadd.
//
// Ownership: borrows log and `claimed`, which gets the indices of all nodes. Threads: Follow() and Update()
// on one at a time; all others from any.
class IndexClaiming {
 public:
  IndexClaiming(Root root, Published<NodeIndices>* claimed, Log* log)
      : root_(std::move(root)), claimed_(claimed), log_(log) {}

  // Waits for the former service's pending request. After an error the former service goes on.
  Result<void> Follow(const std::string& fabric_path, const KubeService& service);
  // The same for a later fabric. An error that stays the same is a warning only once.
  void Update(const std::string& fabric_path, const KubeService& service);
  void Stop();
  // Whether the thread has ended. true also where nothing is claimed.
  bool AwaitEnd(std::chrono::milliseconds limit) const;
  // nullptr: nothing is claimed.
  [[nodiscard]] std::shared_ptr<IndexService> running() const;

 private:
  Result<void> Replace(const std::string& fabric_path, const KubeService& service);

  const Root root_;
  Published<NodeIndices>* const claimed_;
  Log* const log_;
  std::string followed_;       // what the service follows from; "": nothing is claimed
  std::string known_problem_;  // of the latest call

  mutable std::mutex mutex_;
  bool stopped_ = false;
  std::shared_ptr<IndexService> service_;
};

// From the file of the node's index. `claims`: false: the family has no samples.
void AppendNodeIndex(Exposition* page, const Root& root, bool claims);

}  // namespace railhead::node_index
