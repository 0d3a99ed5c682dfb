// Leasing of addresses as railheadd runs it: from configuration to thread, log and metrics.
// Threads: as LeasingLoop, Log and Exposition.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "deviceplugin/support/worker/worker.h"
#include "ipam/lease/cluster_store.h"
#include "ipam/lease/context.h"
#include "ipam/lease/leaser.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::address_leasing {

// The thread of railheadd that leases blocks (ipam/lease/leaser.h).
//
// The thread steps the leaser when a step is due. It watches the directory of the node's store, so it also
// steps soon after an allocation or a release. Only one railheadd of a node leases at a time. During an
// update, the second one waits until the first has ended.
// Ownership: owns the cluster store. Threads: its own one calls `report`; all others from any.
// Errors: kIo when no descriptor is free. Later failures are reported and retried.

class LeasingLoop {
 public:
  // Called after each step.
  using Report = std::function<void(const ipam::Leaser::Outcome&)>;

  static Result<std::unique_ptr<LeasingLoop>> Start(const Root& root, ipam::LeaseSettings settings,
                                                    std::unique_ptr<ipam::ClusterStore> cluster,
                                                    Report report);
  // Ends the thread, after the pending request to the cluster store.
  ~LeasingLoop();
  LeasingLoop(const LeasingLoop&) = delete;
  LeasingLoop& operator=(const LeasingLoop&) = delete;

  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);

  // As of now; nullopt before the first step.
  [[nodiscard]] std::optional<ipam::LeaseStatus> Status() const;
  [[nodiscard]] std::uint64_t Events(ipam::LeaseEvent::Kind kind) const {
    return events_seen_.at(static_cast<std::size_t>(kind)).value();
  }

 private:
  LeasingLoop(const Root& root, ipam::LeaseSettings settings, std::unique_ptr<ipam::ClusterStore> cluster,
              NodeEvents events, Report report);
  void Loop();
  void Lease();
  std::chrono::milliseconds StepOnce();
  void Wait(std::chrono::milliseconds wait);
  [[nodiscard]] std::int64_t StoreChanged() const;
  void Publish(const ipam::Leaser::Outcome& outcome, const ipam::ClockReading& now);

  const Root root_;
  const std::uint64_t fence_ms_;
  const std::unique_ptr<ipam::ClusterStore> cluster_;
  const std::unique_ptr<ipam::LeaseStateStore> lease_state_;
  ipam::Leaser leaser_;
  NodeEvents events_;
  const Report report_;
  std::array<Counter, ipam::kLeaseEventKinds> events_seen_;
  std::int64_t seen_change_ = 0;  // of the node's store, when the last step was over
  std::atomic<bool> stopped_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ipam::LeaseStatus> status_;
  std::uint64_t status_ms_ = 0;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

// The pools that this node leases from, and the kind of store: the leasing part of fabric.json.
//
// Every rail that the fabric leases (Fabric::Leases) is a pool: its subnet without gateway and exclusions.
// Rails that give each node its own range are not leased.
// Threads: pure functions over files. Errors: kInvalid, with the JSON pointer or the rail.

struct LeasePlan {
  ipam::LeaseSettings settings;
  ipam::LeaseStoreConfig store;
};

// nullopt: the fabric leases nothing, or fabric.json does not exist.
Result<std::optional<LeasePlan>> PlanLeases(const Root& root, const std::string& fabric_path);
// The same for a fabric that was read already. It does not ask for the node's identity.
Result<std::optional<LeasePlan>> CheckLeases(const Fabric& fabric, const std::string& fabric_path);

// nullptr: the fabric leases nothing, or fabric.json does not exist.
Result<std::unique_ptr<LeasingLoop>> StartLeasing(const Root& root, const std::string& fabric_path,
                                                  const KubeService& service, Log* log);

// Leases as the fabric says now. After a change of the leased subnets or of the store, another loop takes
// over, as after a restart of railheadd.
//
// Ownership: borrows the log. Threads: Follow() and Update() on one at a time; all others from any.
class Leasing {
 public:
  Leasing(Root root, Log* log) : root_(std::move(root)), log_(log) {}

  // Waits for the former loop's pending request to its store. After an error the former loop goes on.
  Result<void> Follow(const std::string& fabric_path, const KubeService& service);
  // The same for a later fabric. An error that stays the same is a warning only once.
  void Update(const std::string& fabric_path, const KubeService& service);
  void Stop();
  // Whether the thread has ended. true also where nothing is leased.
  bool AwaitEnd(std::chrono::milliseconds limit) const;
  // nullptr: nothing is leased.
  [[nodiscard]] std::shared_ptr<LeasingLoop> loop() const;

 private:
  Result<void> Replace(const std::string& fabric_path, const KubeService& service);

  const Root root_;
  Log* const log_;
  std::string followed_;       // what the loop follows from; "": nothing is leased
  std::string known_problem_;  // of the latest call

  mutable std::mutex mutex_;
  bool stopped_ = false;
  std::shared_ptr<LeasingLoop> loop_;
};

// Logs what a step changed. A failure that stays the same is a warning only once.
class LeasingLog {
 public:
  explicit LeasingLog(Log* log) : log_(log) {}
  void Write(const ipam::Leaser::Outcome& outcome);

 private:
  Log* log_;
  std::string known_problem_;
};

// `leasing` may be null: then the families have no samples.
void AppendLeasing(Exposition* page, const LeasingLoop* leasing);

// Checks whether the leasing settings of the fabric can work: plan and store together.
// Threads: pure functions over files. Errors: kInvalid, kMalformed, with the JSON pointer.

std::chrono::seconds ReuseDelayOf(const Fabric& fabric);

// The firmware's id of the machine. /etc/machine-id is not used: a copied disk has the same one, and a
// container has its image's. Empty where only root may read the id and this process is not root.
std::string MachineId(const Root& root);

// The kind of store, as MakeClusterStore() knows it, and its own settings.
std::pair<std::string, std::string> StoreOf(const ipam::LeaseStoreConfig& store);

// Sends nothing. Succeeds for a fabric that leases nothing. `what` names its file in messages. `all` gets
// every error in the configuration.
Result<void> CheckLeasing(const Fabric& fabric, const std::string& what, std::vector<Error>* all = nullptr);
// The same for a file. Succeeds without one, too.
Result<void> CheckLeasing(const Root& root, const std::string& fabric_path);

// A cluster's store as it is configured.
//
// `type` is "etcd" or "kubernetes", `settings` the object of that name, as JSON text; "" means {}.
// `what` names the fabric's file in errors. Nothing is sent before the store's first call. Threads: pure
// functions over files. Errors: kInvalid, kMalformed, with the JSON pointer.

// `service`: the Kubernetes API's address from the environment.
Result<std::unique_ptr<ipam::ClusterStore>> MakeClusterStore(const Root& root, const std::string& type,
                                                             const std::string& settings,
                                                             const std::string& what,
                                                             const KubeService& service);

// The same check without making a store, for a caller that checks a configuration before it is used.
Result<void> CheckStoreSettings(const std::string& type, const std::string& settings, const std::string& what,
                                std::vector<Error>* all = nullptr);

}  // namespace railhead::address_leasing
