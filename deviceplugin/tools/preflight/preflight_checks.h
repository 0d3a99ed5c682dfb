// The checks of `railctl preflight`: each makes a finding from the state that it gets.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/report.h"
#include "deviceplugin/tools/preflight/report.h"
#include "deviceplugin/tools/rdma_test/report.h"
#include "netns/base/result.h"

namespace railhead::preflight {

// As with `railctl doctor --strict`: warnings count. Checks that the doctor skips do not.
Finding CheckDoctor(const doctor::Report& report);

// nullopt: railheadd has written none. A device that is only drained is healthy here: see CheckDrains.
Finding CheckHealth(const Result<std::optional<health::HealthState>>& state);

// A check of its own, so that a drained rail can be checked before it is returned.
Finding CheckDrains(const Result<std::vector<health::Drain>>& drains);

// A rail's PF on this node, and its carrier.
struct RailPf {
  std::string rail;
  std::string pf;               // its network device; "": the node has no PF for the rail
  std::optional<bool> carrier;  // nullopt: its network device is not here; a pod may have it

  bool operator==(const RailPf&) const = default;
};

// In the fabric's order. An error: the fabric is missing or invalid.
Finding CheckRails(const Result<std::vector<RailPf>>& rails);

Finding CheckCabling(const Result<std::optional<lldp::LldpReport>>& report,
                     std::chrono::system_clock::time_point now);

// nullopt: railheadd does not probe, and the check passes. An unreachable peer may be at fault itself. So the
// node is unfit only when it reaches less than half of its peers.
Finding CheckReachability(const Result<std::optional<reachability::ReachabilityReport>>& report,
                          std::chrono::system_clock::time_point now);

// An error: no test could start. Slower than min_gbit (Gbit/s of payload) is unfit; 0: any speed is fit.
Finding CheckRdma(const Result<std::vector<rdma_test::TestRecord>>& records, double min_gbit = 0);

}  // namespace railhead::preflight
