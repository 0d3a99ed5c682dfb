// DeviceHealth: whether a device can be used, and the rules by which it cannot. Threads: values.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/json/record.h"

namespace railhead::health {

enum class HealthRule : std::uint8_t {
  kLink,        // no carrier, or a PF that is administratively down
  kRdmaPort,    // the RDMA port is not ACTIVE
  kGone,        // the PCI function is not there
  kUnbound,     // no driver is bound
  kVfCount,     // the PF has lost its VFs
  kAer,         // PCIe advanced error reporting
  kDevlink,     // a health reporter of the driver is in state error
  kErrorRate,   // counters of the port
  kPauseStorm,  // ethtool statistics of the PF; off unless switched on
  kDrained,     // taken out of use by an operator (drains.h); cannot be switched off
  kNotReady,    // withheld because of one of Railhead's own records; cannot be switched off
  kNoAnswer,    // the driver or its firmware does not answer in time; cannot be switched off
};
inline constexpr std::size_t kHealthRuleCount = 12;

}  // namespace railhead::health

// A rule's key in the configuration.
template <>
struct railhead::Names<railhead::health::HealthRule> {
  using Rule = health::HealthRule;
  static constexpr std::array kAll = {std::pair{"link", Rule::kLink},
                                      std::pair{"rdmaPort", Rule::kRdmaPort},
                                      std::pair{"gone", Rule::kGone},
                                      std::pair{"unbound", Rule::kUnbound},
                                      std::pair{"vfCount", Rule::kVfCount},
                                      std::pair{"aer", Rule::kAer},
                                      std::pair{"devlink", Rule::kDevlink},
                                      std::pair{"errorRate", Rule::kErrorRate},
                                      std::pair{"pauseStorm", Rule::kPauseStorm},
                                      std::pair{"drained", Rule::kDrained},
                                      std::pair{"notReady", Rule::kNotReady},
                                      std::pair{"noAnswer", Rule::kNoAnswer}};
};

namespace railhead::health {

constexpr std::string_view NameOf(HealthRule rule) {
  return WordOf(rule);
}

// Why a device is Unhealthy. `device` has the fault: the device itself or its PF.
struct HealthReason {
  HealthRule rule = HealthRule::kLink;
  std::string device;
  std::string counter;  // of rules over counters, else ""
  std::string text;
  std::chrono::system_clock::time_point since;

  bool operator==(const HealthReason&) const = default;
};

// A device's state as it is kept over restarts.
struct DeviceHealth {
  std::string id;
  bool is_vf = false;
  std::string pf;
  std::string pf_name;
  bool healthy = true;
  std::chrono::system_clock::time_point since;
  std::vector<HealthReason> reasons;

  bool operator==(const DeviceHealth&) const = default;
};

// Of all devices that may be advertised.
struct Health {
  std::uint64_t generation = 0;  // of the readings; 0: nothing was read yet
  std::vector<DeviceHealth> devices;
};

}  // namespace railhead::health
