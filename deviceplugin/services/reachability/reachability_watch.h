// ReachabilityWatch: the thread of railheadd that probes what this node and its pods reach on the rails.
//
// Off unless fabric.json has `reachability`. It probes each rail's gateway, and the nodes that the rail gives
// probe addresses: a few in each round, and faulty ones in every round. It also probes from inside pods.
// Report() and /run/railhead/reachability.json have the result; the next start reads the file. A second
// thread answers other nodes (echo_server.h).
//
// Ownership: borrows the kernel. Threads: its own one calls all of Calls; all others from any.
// Errors: kIo when no descriptor is free. A later failure goes to Calls::failed and is retried.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/services/reachability/echo_server.h"
#include "deviceplugin/services/reachability/pod_prober.h"
#include "deviceplugin/services/reachability/rail_prober.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "deviceplugin/support/service/published.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::reachability {

class ReachabilityWatch {
 public:
  struct Calls {
    // After each round; `before` is empty at first.
    std::function<void(const ReachabilityReport& before, const ReachabilityReport& now)> round_done;
    // When the failure differs from the one before. `what` is the step that failed.
    std::function<void(const std::string& what, const Error& error)> failed;
  };

  // `keys_path`: the file that the nodes share (shared_keys.h). Each round reads it again.
  // `claimed`: the indices that the cluster's nodes have claimed, where `nodes` lists none. Borrowed.
  static Result<std::unique_ptr<ReachabilityWatch>> Start(const Root& root, Kernel& kernel,
                                                          std::string keys_path,
                                                          const Published<NodeIndices>& claimed, Calls calls);
  ~ReachabilityWatch();
  ReachabilityWatch(const ReachabilityWatch&) = delete;
  ReachabilityWatch& operator=(const ReachabilityWatch&) = delete;

  // The present node, and the path of its fabric; "": no fabric, so no rails. Takes effect soon; does not
  // wait.
  void Update(std::shared_ptr<const inventory::Inventory> inventory, std::string fabric_path);
  [[nodiscard]] ReachabilityReport Report() const;
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  struct Node {
    std::shared_ptr<const inventory::Inventory> inventory;
    std::string fabric_path;
  };
  // What a plan with ranges of probe addresses follows from, where nodes claim their index.
  struct Claims {
    std::shared_ptr<const NodeIndices> all;
    std::optional<int> own;  // if this node may use it now
    bool operator==(const Claims&) const = default;
  };
  struct Plan {
    bool of_claims = false;
    ReachabilitySettings settings;
    std::vector<RailPort> ports;
  };

  ReachabilityWatch(const Root& root, Kernel& kernel, std::string keys_path,
                    const Published<NodeIndices>& claimed, Calls calls, std::unique_ptr<EchoServer> echo);
  void Loop();
  void TakeUpdate();
  [[nodiscard]] Claims ReadClaims() const;
  [[nodiscard]] Result<Plan> PlanOf(const Node& node, const Claims& claims) const;
  void Apply(Plan plan);
  void Round();
  // If the file is invalid, the earlier keys stay.
  Result<void> TakeKeys();
  Result<void> ProbeRails();
  void ProbePods();
  void Publish();
  void Save(const ReachabilityReport& before, const ReachabilityReport& report);
  void Complain(const std::string& what, const Result<void>& done, std::string* before);
  void Wait(std::chrono::milliseconds limit);

  const Root root_;
  Kernel& kernel_;
  const std::string keys_path_;
  const Published<NodeIndices>& claimed_;
  const Calls calls_;
  const std::unique_ptr<EchoServer> echo_;
  std::optional<Node> node_;  // of the present plan
  Claims claims_;
  bool of_claims_ = false;
  ReachabilitySettings settings_;
  std::vector<RailPort> ports_;
  std::vector<std::unique_ptr<RailProber>> rails_;  // in the fabric's order
  PodProber pods_;
  JournalCache journal_;
  std::mt19937_64 random_{std::random_device{}()};
  std::optional<ReachabilityReport> restored_;
  std::shared_ptr<const SharedKeys> keys_;
  std::string complaint_;
  std::string keys_complaint_;
  std::chrono::steady_clock::time_point saved_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Node> update_;
  ReachabilityReport report_;
  std::atomic<bool> stopping_{false};
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead::reachability
