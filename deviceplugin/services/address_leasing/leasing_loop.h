// The thread of railheadd that leases blocks (ipam/lease/leaser.h).
//
// It steps the leaser when that wants it, and soon after addresses were given or released:
// the directory of the node's store is watched. One railheadd of a node at a time leases: another
// one, during an update, waits until the first has ended.
// Ownership: owns the cluster store. Threads: its own one calls `report`; all else from any.
// Errors: kIo when there are no descriptors; what fails later is reported and tried again.
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

#include "cni/fabric/fabric.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "deviceplugin/support/worker/worker.h"
#include "ipam/lease/context.h"
#include "ipam/lease/leaser.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

class LeasingLoop {
 public:
  // Behind each step.
  using Report = std::function<void(const Leaser::Outcome&)>;

  static Result<std::unique_ptr<LeasingLoop>> Start(const Root& root, LeaseSettings settings,
                                                    std::unique_ptr<ClusterStore> cluster, Report report);
  // Ends the thread; a request to the cluster store is waited for.
  ~LeasingLoop();
  LeasingLoop(const LeasingLoop&) = delete;
  LeasingLoop& operator=(const LeasingLoop&) = delete;

  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);

  // As of now; nullopt before the first step.
  [[nodiscard]] std::optional<LeaseStatus> Status() const;
  [[nodiscard]] std::uint64_t Events(LeaseEvent::Kind kind) const {
    return events_seen_.at(static_cast<std::size_t>(kind)).value();
  }

 private:
  LeasingLoop(const Root& root, LeaseSettings settings, std::unique_ptr<ClusterStore> cluster,
              NodeEvents events, Report report);
  void Loop();
  void Lease();
  std::chrono::milliseconds StepOnce();
  void Wait(std::chrono::milliseconds wait);
  [[nodiscard]] std::int64_t StoreChanged() const;
  void Publish(const Leaser::Outcome& outcome, const ClockReading& now);

  const Root root_;
  const std::uint64_t fence_ms_;
  const std::unique_ptr<ClusterStore> cluster_;
  const std::unique_ptr<NodeBook> book_;
  Leaser leaser_;
  NodeEvents events_;
  const Report report_;
  std::array<Counter, kLeaseEventKinds> events_seen_;
  std::int64_t seen_change_ = 0;  // of the node's store, when the last step was over
  std::atomic<bool> stopped_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<LeaseStatus> status_;
  std::uint64_t status_ms_ = 0;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

// What this node is to lease, and from which kind of store: fabric.json's part of it.
//
// Every rail that the fabric leases (Fabric::Leases) is a pool: its subnet without gateway and
// exclusions. Rails that give nodes ranges of their own are left alone.
// Threads: pure functions over files. Errors: kInvalid, with the JSON pointer or the rail.

struct LeasePlan {
  LeaseSettings settings;
  LeaseStoreConfig store;
  std::string where;  // "FILE: /addresses/store", for messages
};

// nullopt: the fabric leases nothing, or there is none.
Result<std::optional<LeasePlan>> PlanLeases(const Root& root, const std::string& fabric_path);
// The same for a fabric that was read, without asking the node who it is.
Result<std::optional<LeasePlan>> CheckLeases(const Fabric& fabric, const std::string& fabric_path);

}  // namespace railhead
