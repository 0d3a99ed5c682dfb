// The fields of fabric.json's object `health`, each in one line. docs/reference/fabric.md says what each is
// for.
//
// Included where it is read or written, or its schema is made. Threads: pure descriptions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/health/rules.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"
#include "netns/json/record_io.h"
#include "netns/json/record_schema.h"

namespace railhead::health {

inline constexpr const char* kProbesReport =
    "remove it: probes only report (docs/operate/node-status.md says how to act on what they say)";

inline constexpr FieldRules kUpToAnHour{.min = 1, .max = 3600};
inline constexpr FieldRules kUpToADay{.min = 0, .max = 86400};

constexpr bool HasCounters(HealthRule rule) {
  return rule == HealthRule::kAer || rule == HealthRule::kErrorRate || rule == HealthRule::kPauseStorm;
}

// `counters` of a rule: by name what differs from its defaults.
void ReadCounters(const JsonValue& json, HealthRule rule, std::vector<CounterLimit>& limits);
nlohmann::ordered_json WriteCounters(HealthRule rule, const std::vector<CounterLimit>& limits);
nlohmann::ordered_json CountersSchema(HealthRule rule);
void CheckRule(const RuleSettings& rule, const std::vector<std::string>& reporters,
               const record::Complain& complain);

// As a recording has them: also one of a version whose rules judged by probes.
struct RulesInRecording : HealthRules {};

// What may be said of one rule.
template <HealthRule kRule>
struct RuleFields : RuleSettings {
  std::vector<std::string> reporters;  // kDevlink
};

template <HealthRule kRule>
struct CountersForm {
  static void Read(const JsonValue& json, RuleFields<kRule>& rule) {
    ReadCounters(json, kRule, rule.counters);
  }
  static nlohmann::ordered_json Write(const RuleFields<kRule>& rule) {
    return WriteCounters(kRule, rule.counters);
  }
  static nlohmann::ordered_json Schema() { return CountersSchema(kRule); }
};

// A rule in its place among the others.
template <HealthRule kRule>
struct RuleForm {
  static void Read(const JsonValue& json, HealthRules& rules) {
    RuleFields<kRule> rule = Of(rules);
    if (!record::ReadObject(json, rule, true)) return;
    if constexpr (kRule == HealthRule::kDevlink) rules.reporters = rule.reporters;
    rules.Of(kRule) = std::move(rule);
  }
  static nlohmann::ordered_json Write(const HealthRules& rules) { return ToJson(Of(rules)); }
  static nlohmann::ordered_json Schema() { return record::ObjectSchema(Of({})); }

 private:
  static RuleFields<kRule> Of(const HealthRules& rules) {
    RuleFields<kRule> rule{rules.Of(kRule), {}};
    if constexpr (kRule == HealthRule::kDevlink) rule.reporters = rules.reporters;
    return rule;
  }
};

}  // namespace railhead::health

template <>
struct railhead::Shape<railhead::health::CounterLimit> {
  using T = health::CounterLimit;
  static void List(auto& f) {
    f("limit", &T::limit);
    // One second's resolution of a window of a day would not be kept; see RateWindow.
    f("seconds", &T::window, {.min = 1, .max = health::kUpToADay.max});
  }
  static void Check(const T& limit, const record::Complain& complain) {
    if (limit.window.count() == 0)
      complain("seconds", "is required for a counter that has no default", "for example 600");
  }
};

template <railhead::health::HealthRule kRule>
struct railhead::Shape<railhead::health::RuleFields<kRule>> {
  using T = health::RuleFields<kRule>;
  static void Switch(T& rule, bool on) { rule.enabled = on; }
  static void List(auto& f) {
    f("enabled", &T::enabled);
    f("downAfter", &T::down_after, health::kUpToADay);
    f("upAfter", &T::up_after, health::kUpToADay);
    if constexpr (health::HasCounters(kRule)) f.Form("counters", health::CountersForm<kRule>{});
    if constexpr (kRule == health::HealthRule::kDevlink) f("reporters", &T::reporters);
  }
  static void Check(const T& rule, const record::Complain& complain) {
    CheckRule(rule, rule.reporters, complain);
  }
};

template <>
struct railhead::Shape<railhead::health::HealthRules> {
  using T = health::HealthRules;
  static void Switch(T& rules, bool on) {
    if (on) return;
    for (const health::HealthRule rule : health::AllHealthRules()) rules.Of(rule).enabled = IsAlwaysOn(rule);
  }
  static void List(auto& f) {
    ListRules(f);
    f.Gone("unreachable", health::kProbesReport);
    f.Gone("impaired", health::kProbesReport);
  }
  static void ListRules(auto& f) {
    f("intervalSeconds", &T::interval, health::kUpToAnHour);
    f("vfSeconds", &T::vf_interval, health::kUpToAnHour);
    f("counterSeconds", &T::counter_interval, health::kUpToAnHour);
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (ListRule<static_cast<health::HealthRule>(i)>(f), ...);
    }
    (std::make_index_sequence<health::kHealthRuleCount>{});
  }

 private:
  template <health::HealthRule kRule>
  static void ListRule(auto& f) {
    if constexpr (!IsAlwaysOn(kRule)) f.Form(NameOf(kRule).data(), health::RuleForm<kRule>{});
  }
};

template <>
struct railhead::Shape<railhead::health::RulesInRecording> {
  using Rules = Shape<health::HealthRules>;
  static void Switch(health::RulesInRecording& rules, bool on) { Rules::Switch(rules, on); }
  static void List(auto& f) {
    Rules::ListRules(f);
    f.Foreign("unreachable");
    f.Foreign("impaired");
  }
};
