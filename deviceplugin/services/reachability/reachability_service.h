// What the rails reach, as railheadd tells it: log and metrics.
// Threads: as Log and Exposition.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/reachability/reach_report.h"
#include "deviceplugin/services/reachability/reach_watch.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::reachability {

// What probes last said of each PF's rail, from the thread that probes to the one that judges health.
//
// A rail is dead when it was probed and neither gateway nor peers answer. It is impaired when most of the
// peers that are heard are ill all the same (lossy, paths, MTU, one way): rather the fault of one here than
// of each of them there. Silent peers say nothing of that: they may be switched off. A rail that cannot be
// probed (no carrier, its address in use by another) is not known: that is the business of other rules. A PF
// of several rails is as the best of them. Threads: thread-safe.

class RailVerdicts {
 public:
  void Take(const ReachReport& report);
  // nullopt: no rail of this PF is probed.
  [[nodiscard]] std::optional<health::ObservedRail> Of(const std::string& pf) const;
  [[nodiscard]] bool AnyIs(const std::function<bool(const health::ObservedRail&)>& such) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, health::ObservedRail> rails_;  // by the PF's PCI address
};

// `rails` and `log` are borrowed.
Result<std::unique_ptr<ReachWatch>> StartReachWatch(const Root& root, Kernel& kernel,
                                                    const std::string& keys_path, RailVerdicts* rails,
                                                    Log* log);

// What is different from before: rails, gateways and pods each, peers in one line for a rail.
void LogReach(Log* log, const ReachReport& before, const ReachReport& now);

// Of the peers that are not well at most these are named for each rail, the worst first: Prometheus keeps a
// series for every pair of nodes that it is told.
inline constexpr std::size_t kMostBadPeers = 16;

void AppendReach(Exposition* page, const ReachReport& report);

}  // namespace railhead::reachability
