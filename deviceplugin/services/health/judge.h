// What one observation says to one rule, without memory: hysteresis is the monitor's.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/rules.h"

namespace railhead {

struct Verdict {
  enum class Kind : std::uint8_t {
    kGood,     // well, or nothing can be seen that would say otherwise
    kBad,      // `text` says what is wrong
    kExempt,   // the rule does not apply now: what it has said before is void
    kUnknown,  // cannot be judged now: what it has said before stands
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
std::string_view NameOf(PortState state);
std::optional<PortState> PortStateNamed(std::string_view name);
// "unknown", "alive", "dead"
std::string_view NameOf(ObservedRail::State state);
std::optional<ObservedRail::State> RailStateNamed(std::string_view name);

}  // namespace railhead
