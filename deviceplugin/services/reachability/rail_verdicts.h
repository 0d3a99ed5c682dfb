// What probes last said of each PF's rail, from the thread that probes to the one that judges health.
//
// A rail is dead when it was probed and neither gateway nor peers answer. It is impaired when most of the
// peers that are heard are ill all the same (lossy, paths, MTU, one way): rather the fault of one here than
// of each of them there. Silent peers say nothing of that: they may be switched off. A rail that cannot be
// probed (no carrier, its address in use by another) is not known: that is the business of other rules. A PF
// of several rails is as the best of them. Threads: thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/reachability/reach_report.h"

namespace railhead {

class RailVerdicts {
 public:
  void Take(const ReachReport& report);
  // nullopt: no rail of this PF is probed.
  [[nodiscard]] std::optional<ObservedRail> Of(const std::string& pf) const;
  [[nodiscard]] bool AnyIs(const std::function<bool(const ObservedRail&)>& such) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, ObservedRail> rails_;  // by the PF's PCI address
};

}  // namespace railhead
