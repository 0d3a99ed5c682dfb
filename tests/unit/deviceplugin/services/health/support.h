// Subjects, observations and times for the tests of health.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/services/health/observation.h"

namespace railhead::testing {

inline constexpr const char* kPf = "0000:43:00.0";
inline constexpr const char* kVf = "0000:43:02.0";
inline constexpr const char* kVf2 = "0000:43:02.1";

// `seconds` after some moment; both clocks go alike.
inline health::HealthTime At(int seconds) {
  constexpr int kBegin = 1'800'000'000;
  return {std::chrono::steady_clock::time_point(std::chrono::seconds(1000 + seconds)),
          std::chrono::system_clock::time_point(std::chrono::seconds(kBegin + seconds))};
}

inline health::HealthSubject Pf(int vfs = 2) {
  return {.id = kPf, .is_vf = false, .pf_id = kPf, .pf_name = "pf0", .vf_count = vfs, .in_use = false};
}

inline health::HealthSubject Vf(const std::string& id = kVf, bool in_use = false) {
  return {.id = id, .is_vf = true, .pf_id = kPf, .pf_name = "pf0", .vf_count = 0, .in_use = in_use};
}

// A PF with carrier, an ACTIVE port and two VFs.
inline health::Observation GoodPf() {
  health::Observation seen;
  seen.link = health::ObservedLink{"pf0", true, true, "up"};
  seen.port = health::ObservedPort{"mlx5_0", PortState::kActive};
  seen.vf_count = 2;
  return seen;
}

// A VF on the host, up.
inline health::Observation GoodVf() {
  health::Observation seen;
  seen.link = health::ObservedLink{"pf0v0", true, true, ""};
  return seen;
}

inline health::Observation NoCarrier(health::Observation seen) {
  seen.link->carrier = false;
  if (!seen.link->operstate.empty()) seen.link->operstate = "down";
  if (seen.port) seen.port->state = PortState::kDown;
  return seen;
}

inline health::Observation WithCounter(health::Observation seen, health::HealthRule rule,
                                       const std::string& name, std::uint64_t value) {
  seen.counters.push_back({rule, name, value});
  return seen;
}

// Every rule off but this one.
inline health::HealthRules Only(health::HealthRule rule) {
  health::HealthRules rules;
  for (const health::HealthRule other : health::AllHealthRules()) rules.Of(other).enabled = other == rule;
  return rules;
}

}  // namespace railhead::testing
