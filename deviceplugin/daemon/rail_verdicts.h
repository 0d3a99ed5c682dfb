// What probes last said of each PF's rail, from the thread that probes to the one that judges health.
//
// A rail is dead when it was probed and neither gateway nor peers answer. One that cannot be probed (no
// carrier, its address in use by another) is not known: that is the business of other rules. A PF of several
// rails is dead when all of them are.
// Threads: thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "deviceplugin/connectivity/reach_report.h"
#include "deviceplugin/health/observation.h"

namespace railhead {

class RailVerdicts {
 public:
  void Take(const ReachReport& report);
  // nullopt: no rail of this PF is probed.
  [[nodiscard]] std::optional<ObservedRail> Of(const std::string& pf) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, ObservedRail> rails_;  // by the PF's PCI address
};

}  // namespace railhead
