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
inline HealthTime At(int seconds) {
  constexpr int kBegin = 1'800'000'000;
  return {std::chrono::steady_clock::time_point(std::chrono::seconds(1000 + seconds)),
          std::chrono::system_clock::time_point(std::chrono::seconds(kBegin + seconds))};
}

inline HealthSubject Pf(int vfs = 2) {
  return {.id = kPf, .is_vf = false, .pf_id = kPf, .pf_name = "pf0", .vf_count = vfs, .in_use = false};
}

inline HealthSubject Vf(const std::string& id = kVf, bool in_use = false) {
  return {.id = id, .is_vf = true, .pf_id = kPf, .pf_name = "pf0", .vf_count = 0, .in_use = in_use};
}

// A PF with carrier, an ACTIVE port and two VFs.
inline Observation GoodPf() {
  Observation seen;
  seen.link = ObservedLink{"pf0", true, true, "up"};
  seen.port = ObservedPort{"mlx5_0", PortState::kActive};
  seen.vf_count = 2;
  return seen;
}

// A VF at home, up.
inline Observation GoodVf() {
  Observation seen;
  seen.link = ObservedLink{"pf0v0", true, true, ""};
  return seen;
}

inline Observation NoCarrier(Observation seen) {
  seen.link->carrier = false;
  if (!seen.link->operstate.empty()) seen.link->operstate = "down";
  if (seen.port) seen.port->state = PortState::kDown;
  return seen;
}

inline Observation WithCounter(Observation seen, HealthRule rule, const std::string& name,
                               std::uint64_t value) {
  seen.counters.push_back({rule, name, value});
  return seen;
}

// Every rule off but this one.
inline HealthRules Only(HealthRule rule) {
  HealthRules rules = DefaultHealthRules();
  for (const HealthRule other : AllHealthRules()) rules.Of(other).enabled = other == rule;
  return rules;
}

}  // namespace railhead::testing
