// RailVerdicts: which rails probes say are at fault, for the node status.
//
// A rail is dead when it was probed and neither gateway nor peers answer. A rail is impaired when most
// answering peers are faulty (lossy, paths, MTU, one way). The fault is then more likely here than at each of
// them. Silent peers do not count, since they may be off. A rail that cannot be probed (no carrier, an
// address conflict) is unknown: what was said of it stands, and health rules see why.
// A dead rail counts at once, for probes were confirmed. Loss may pass: an impaired rail counts after
// kImpairedAfter. A rail that is well again must stay so for kWellAfter, so that the cluster's API is not
// asked to write each round. Threads: one.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "deviceplugin/node/snapshot/rail_faults.h"
#include "deviceplugin/services/reachability/reachability_report.h"

namespace railhead::reachability {

class RailVerdicts {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kImpairedAfter{60};
  static constexpr std::chrono::seconds kWellAfter{120};

  // True when a rail's fault came or went.
  bool Update(const ReachabilityReport& report, Clock::time_point now);
  [[nodiscard]] RailFaults Faults() const;

 private:
  struct Rail {
    std::string fault;  // that counts
    std::optional<Clock::time_point> impaired_since;
    std::optional<Clock::time_point> well_since;
  };

  std::map<std::string, Rail> rails_;
};

}  // namespace railhead::reachability
