// The verdict of one rule on one observation, without memory: hysteresis is the monitor's.
//
// Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/rules.h"

namespace railhead::health {

struct Verdict {
  enum class Kind : std::uint8_t {
    kGood,     // no fault, or nothing that shows one
    kBad,      // `text` names the fault
    kExempt,   // the rule does not apply now: its earlier verdicts are void
    kUnknown,  // cannot be judged now: its earlier verdicts stand
  };
  Kind kind = Kind::kGood;
  std::string text;
  std::string counter;
};

// Rules over counters are kGood here: see RateWindow.
Verdict Judge(HealthRule rule, const HealthSubject& subject, const Observation& seen);

// The verdict when `counter` rose by `rises` within the window of `limit`.
Verdict JudgeRises(const CounterLimit& limit, const HealthSubject& subject, std::uint64_t rises);

// As ib_core calls it: "ACTIVE".
inline constexpr std::array kPortStates = {
    std::pair{"NOP", PortState::kNop},       std::pair{"DOWN", PortState::kDown},
    std::pair{"INIT", PortState::kInit},     std::pair{"ARMED", PortState::kArmed},
    std::pair{"ACTIVE", PortState::kActive}, std::pair{"ACTIVE_DEFER", PortState::kActiveDefer}};
std::string_view NameOf(PortState state);

}  // namespace railhead::health
