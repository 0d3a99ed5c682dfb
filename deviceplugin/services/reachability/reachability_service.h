// ReachabilityService: probes what this node and its pods reach on the rails.
//
// Off unless fabric.json has `reachability`. It probes each rail's gateway, and the nodes that the rail gives
// probe addresses: a few in each round, and faulty ones in every round. It also probes from inside pods. The
// published report and /run/railhead/reachability.json have the result; the next start reads the file.
// Another service answers other nodes (echo_server.h).
//
// Ownership: borrows all but root and path. Threads: as Service; report() and faults() from any.
// Errors: none; a failure is logged when it differs from the one before, and retried.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal_cache.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/node/snapshot/rail_faults.h"
#include "deviceplugin/services/reachability/echo_server.h"
#include "deviceplugin/services/reachability/pod_prober.h"
#include "deviceplugin/services/reachability/rail_prober.h"
#include "deviceplugin/services/reachability/rail_verdicts.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::reachability {

class ReachabilityService : public Service {
 public:
  // `keys_path`: the file that the nodes share (shared_keys.h). Each round reads it again.
  // `claimed`: the indices that the cluster's nodes have claimed, where `nodes` lists none.
  ReachabilityService(Root root, Kernel& kernel, EchoServer& echo, std::string keys_path,
                      const Published<NodeSnapshot>& node, const Published<NodeIndices>& claimed, Log* log);

  [[nodiscard]] std::string_view name() const override { return "reachability"; }
  void Register(MetricRegistry& metrics) override;
  Result<void> Run(Worker& worker) override;

  [[nodiscard]] const Published<ReachabilityReport>& report() const { return report_; }
  [[nodiscard]] const Published<RailFaults>& faults() const { return faults_; }

 private:
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

  void TakeNode();
  [[nodiscard]] Claims ReadClaims() const;
  [[nodiscard]] Result<Plan> PlanOf(const NodeSnapshot& node, const Claims& claims) const;
  void Apply(Plan plan);
  void Round(Worker& worker);
  // If the file is invalid, the earlier keys stay.
  Result<void> TakeKeys();
  Result<void> ProbeRails(Worker& worker);
  void ProbePods(const Worker& worker);
  void Publish();
  void Save(const ReachabilityReport& before, const ReachabilityReport& report);
  void Complain(const std::string& what, const Result<void>& done, OncePerChange* known);
  std::chrono::milliseconds Pause();

  const Root root_;
  Kernel& kernel_;
  EchoServer& echo_;
  const std::string keys_path_;
  const Published<NodeSnapshot>& node_;
  const Published<NodeIndices>& claimed_;
  Log* const log_;
  std::shared_ptr<const NodeSnapshot> known_;  // what the present plan follows from
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
  OncePerChange complaint_;
  OncePerChange keys_complaint_;
  std::chrono::steady_clock::time_point saved_;
  RailVerdicts verdicts_;
  Published<ReachabilityReport> report_;
  Published<RailFaults> faults_;
};

}  // namespace railhead::reachability
