// Observation: the state of one PCI function at one moment; and the types of health reports.
//
// Ownership: plain values. Threads: values.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/health/device_health.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/rules.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::health {

// Durations are measured by `steady`, which nothing sets; `wall` is what people read.
struct HealthTime {
  std::chrono::steady_clock::time_point steady;
  std::chrono::system_clock::time_point wall;

  static HealthTime Now() { return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()}; }
};

// The observed function, as in the inventory; it outlives the function itself.
struct HealthSubject {
  std::string id;       // "0000:43:10.0", or of a subfunction "mlx5_core.sf.2"
  bool is_vf = false;   // lives by a PF: a VF, or a subfunction
  std::string pf_id;    // of a PF: its own
  std::string pf_name;  // the PF's network device; "" unknown
  int vf_count = 0;     // of a PF: VFs that the inventory knows
  bool in_use = false;  // a pod has it: the host cannot observe it
  int lost_vfs = 0;     // of a PF without VFs: those that it had
  // A VF that went with its PF, or with all others of its PF, which tells.
  bool lost_with_pf = false;
};

struct ObservedLink {
  std::string netdev;
  bool admin_up = false;
  bool carrier = false;
  std::string operstate;  // of PFs only, else ""
};

struct ObservedPort {
  std::string ibdev;
  PortState state = PortState::kNop;
};

struct ObservedCounter {
  HealthRule rule = HealthRule::kErrorRate;
  std::string name;
  std::uint64_t value = 0;
};

struct Observation {
  bool answers = true;               // false: a read missed its deadline, so nothing else is known
  bool present = true;               // the PCI function is there
  bool bound = true;                 // to a driver
  std::optional<ObservedLink> link;  // nullopt: no network device in the host's namespace
  std::optional<ObservedPort> port;  // nullopt: no RDMA device to be seen
  std::optional<int> vf_count;       // of a PF; nullopt: no SR-IOV
  // Counters that were read this time; missing ones are left out.
  std::vector<ObservedCounter> counters;
  std::vector<std::string> failed_reporters;  // devlink
  std::optional<Drain> drained;               // by an operator
  std::string not_ready;                      // why; "": it is ready
};

// A device became Healthy or Unhealthy, or is Unhealthy for other reasons than before.
struct HealthChange {
  std::string device;
  bool is_vf = false;
  std::string pf;
  bool healthy = true;
  bool flipped = false;               // `healthy` differs from before
  std::vector<HealthReason> reasons;  // present now
  std::vector<HealthReason> started;  // of them, those that are new
  std::vector<HealthReason> ended;    // those that are over
  std::chrono::system_clock::time_point time;
};

}  // namespace railhead::health
