// The health rules: the conditions under which a device is unhealthy, their hysteresis and settings.
//
// Each rule has a hysteresis of its own: bad for `down_after` before a device is
// Unhealthy, good for `up_after` before it is Healthy again. Rules over counters judge
// rises, not values: more than `limit` within `window`. The defaults and the reason for
// each number stand in docs/operate/health.md and docs/reference/fabric.md.
// Threads: plain values, pure functions. Errors: kInvalid and kMalformed with the JSON pointer.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/node/health/device_health.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"

namespace railhead::health {

// Rules that settings cannot switch off.
constexpr bool IsAlwaysOn(HealthRule rule) {
  return rule == HealthRule::kDrained || rule == HealthRule::kNotReady || rule == HealthRule::kNoAnswer;
}

// In the order in which they are judged.
const std::array<HealthRule, kHealthRuleCount>& AllHealthRules();

struct CounterLimit {
  std::string counter;
  std::uint64_t limit = 0;  // more rises than this within the window are bad
  std::chrono::seconds window{0};

  bool operator==(const CounterLimit&) const = default;
};

struct RuleSettings {
  bool enabled = true;
  std::chrono::seconds down_after{0};
  std::chrono::seconds up_after{0};
  std::vector<CounterLimit> counters;  // aer, errorRate and pauseStorm only

  bool operator==(const RuleSettings&) const = default;
};

std::array<RuleSettings, kHealthRuleCount> DefaultRules();

struct HealthRules {
  std::chrono::seconds interval{5};           // PFs: link, port, presence
  std::chrono::seconds vf_interval{60};       // each healthy VF
  std::chrono::seconds counter_interval{30};  // PFs: all counters
  std::array<RuleSettings, kHealthRuleCount> rules = DefaultRules();
  // Of rule devlink: "NAME", or "DRIVER:NAME" for devices of one driver. mlx5_core reports the loss of its
  // firmware as fw_fatal, and lesser errors as fw (mlx5/core/health.c). bnxt_en has only fw since
  // Linux 6.1 (bnxt_devlink.c, bnxt_dl_fw_reporter_ops).
  std::vector<std::string> reporters = {"fw_fatal", "bnxt_en:fw"};

  [[nodiscard]] const RuleSettings& Of(HealthRule rule) const {
    return rules[static_cast<std::size_t>(rule)];
  }
  RuleSettings& Of(HealthRule rule) { return rules[static_cast<std::size_t>(rule)]; }
  bool operator==(const HealthRules&) const = default;
};

// Reads the object `health` of `parent`: its fields are in rules_shape.h. Wrong values and unknown keys make
// `parent`'s document fail.
HealthRules ReadHealthRules(JsonReader& parent);
// The same of a recording, which may have rules that are gone.
HealthRules ReadRecordedRules(JsonReader& parent);

// Of Fabric::health, "" for the defaults; `what` names the fabric's file in errors. `all` gets all errors,
// the result has the first.
Result<HealthRules> ParseHealthRules(const std::string& text, const std::string& what,
                                     std::vector<Error>* all = nullptr);

// The rules as JSON for ReadHealthRules(). It includes defaults, so that it means the same under another
// version's defaults.
nlohmann::ordered_json HealthRulesAsJson(const HealthRules& rules);

}  // namespace railhead::health
