// Reachability in railheadd: log, metrics, and the verdicts for health.
// Threads: as Log and Exposition.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reachability/reachability_watch.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::reachability {

// The latest verdict on each PF's rail, from the probing thread to the health thread.
//
// A rail is dead when it was probed and neither gateway nor peers answer. A rail is impaired when most
// answering peers are faulty (lossy, paths, MTU, one way). The fault is then more likely here than at each of
// them. Silent peers do not count, since they may be off. A rail that cannot be probed (no carrier, an
// address conflict) is unknown: other health rules see that. A PF of several rails gets the verdict of its
// best rail. Threads: thread-safe.

class RailVerdicts {
 public:
  void Update(const ReachabilityReport& report);
  // nullopt: no rail of this PF is probed.
  [[nodiscard]] std::optional<health::ObservedRail> Of(const std::string& pf) const;
  [[nodiscard]] bool AnyIs(const std::function<bool(const health::ObservedRail&)>& such) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, health::ObservedRail> rails_;  // by the PF's PCI address
};

// `rails` and `log` are borrowed.
Result<std::unique_ptr<ReachabilityWatch>> StartReachabilityWatch(const Root& root, Kernel& kernel,
                                                                  const std::string& keys_path,
                                                                  RailVerdicts* rails, Log* log);

// Logs the differences between two reports: rails, gateways and pods one by one, peers in one line per rail.
void LogReachability(Log* log, const ReachabilityReport& before, const ReachabilityReport& now);

// The number of faulty peers with a metric, per rail, worst first: Prometheus keeps a series for every pair
// of nodes.
inline constexpr std::size_t kMostBadPeers = 16;

void AppendReachability(Exposition* page, const ReachabilityReport& report);

}  // namespace railhead::reachability
