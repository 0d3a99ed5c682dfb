// Reachability in railheadd: log, metrics, and the verdicts for the node status.
// Threads: as Log and Exposition.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reachability/reachability_watch.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::reachability {

// Which rails probes say are at fault, from the probing thread to the node status.
//
// A rail is dead when it was probed and neither gateway nor peers answer. A rail is impaired when most
// answering peers are faulty (lossy, paths, MTU, one way). The fault is then more likely here than at each of
// them. Silent peers do not count, since they may be off. A rail that cannot be probed (no carrier, an
// address conflict) is unknown: what was said of it stands, and health rules see why.
// A dead rail counts at once, for probes were confirmed. Loss may pass: an impaired rail counts after
// kImpairedAfter. A rail that is well again must stay so for kWellAfter, so that the cluster's API is not
// asked to write each round. Threads: thread-safe.

class RailVerdicts {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kImpairedAfter{60};
  static constexpr std::chrono::seconds kWellAfter{120};

  // True when a rail's fault came or went.
  bool Update(const ReachabilityReport& report, Clock::time_point now);
  // Why this rail is at fault, for people; "": it is not, or is not probed.
  [[nodiscard]] std::string FaultOf(const std::string& rail) const;

 private:
  struct Rail {
    std::string fault;  // that counts
    std::optional<Clock::time_point> impaired_since;
    std::optional<Clock::time_point> well_since;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Rail> rails_;
};

// `claimed`, `rails` and `log` are borrowed. `changed` is called after a rail's fault came or went.
Result<std::unique_ptr<ReachabilityWatch>> StartReachabilityWatch(const Root& root, Kernel& kernel,
                                                                  const std::string& keys_path,
                                                                  const Published<NodeIndices>& claimed,
                                                                  RailVerdicts* rails,
                                                                  std::function<void()> changed, Log* log);

// Logs the differences between two reports: rails, gateways and pods one by one, peers in one line per rail.
void LogReachability(Log* log, const ReachabilityReport& before, const ReachabilityReport& now);

// The number of faulty peers with a metric, per rail, worst first: Prometheus keeps a series for every pair
// of nodes.
inline constexpr std::size_t kMostBadPeers = 16;

void AppendReachability(Exposition* page, const ReachabilityReport& report);

}  // namespace railhead::reachability
