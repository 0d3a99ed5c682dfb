// What one observation says to one rule, without memory: hysteresis is the monitor's.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// How much a counter rose within the last `window`.
//
// Rises are kept in at most 30 steps, so memory does not depend on how often is read;
// the window is exact to a thirtieth. A value below the last one is a counter that began
// anew (driver rebound, statistics reset): no rise, and the new value is the base.
// Threads: one at a time.

class RateWindow {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RateWindow(std::chrono::seconds window);

  void Read(std::uint64_t value, Time now);
  // Rises that were seen at `when` by someone else: a process before this one.
  void Add(std::uint64_t rises, Time when);
  // Rises within the window that ends now.
  [[nodiscard]] std::uint64_t Sum(Time now) const;

 private:
  struct Step {
    Time start;
    std::uint64_t rises = 0;
  };

  std::chrono::steady_clock::duration window_;
  std::chrono::steady_clock::duration step_;
  std::optional<std::uint64_t> last_;
  std::vector<Step> steps_;  // in the order of time
};

}  // namespace railhead
