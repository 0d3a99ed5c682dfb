// Rails, devices and pods for tests of node status.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/services/node_status/rail_states.h"

namespace railhead::testing {

inline health::HealthReason Because(health::HealthRule rule, const std::string& device,
                                    const std::string& text) {
  health::HealthReason reason;
  reason.rule = rule;
  reason.device = device;
  reason.text = text;
  return reason;
}

// A PF is well without reasons.
inline health::DeviceHealth PfHealth(const std::string& id, const std::string& name,
                                     std::vector<health::HealthReason> reasons = {}) {
  health::DeviceHealth device;
  device.id = device.pf = id;
  device.pf_name = name;
  device.healthy = reasons.empty();
  device.reasons = std::move(reasons);
  return device;
}

inline health::DeviceHealth VfHealth(const std::string& id, const std::string& pf,
                                     std::vector<health::HealthReason> reasons = {}) {
  health::DeviceHealth device = PfHealth(id, "", std::move(reasons));
  device.is_vf = true;
  device.pf = pf;
  return device;
}

inline constexpr const char* kPfA = "0000:43:00.0";
inline constexpr const char* kPfB = "0000:83:00.0";
inline constexpr const char* kVfA = "0000:43:02.0";

inline health::HealthReason NoCarrier() {
  return Because(health::HealthRule::kLink, kPfA, "PF pf0 (0000:43:00.0) has no carrier");
}

inline node_status::RailState Healthy(const std::string& rail) {
  node_status::RailState state;
  state.rail = rail;
  state.pf = "pf-of-" + rail;
  state.healthy = true;
  return state;
}

inline node_status::RailState Broken(const std::string& rail,
                                     health::HealthRule rule = health::HealthRule::kLink) {
  node_status::RailState state = Healthy(rail);
  state.healthy = false;
  state.reasons = {Because(rule, rail, "PF of " + rail + " is bad")};
  return state;
}

}  // namespace railhead::testing
