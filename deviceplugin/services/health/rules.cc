#include "deviceplugin/services/health/rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/rules_shape.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::health {
namespace {

using std::chrono::seconds;
using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxCounters = 64;
constexpr std::array<std::string_view, 3> kAerCounters = {"aer_dev_correctable", "aer_dev_fatal",
                                                          "aer_dev_nonfatal"};

// Names become parts of paths below /sys.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f && c != '/'; });
}

bool CheckName(const JsonValue& counter, HealthRule rule, const std::string& name) {
  if (!IsName(name)) {
    counter.Fail("is not a valid counter name");
    return false;
  }
  if (rule != HealthRule::kAer || Contains(kAerCounters, name)) return true;
  counter.Fail("is not a counter of PCIe error reporting",
               "known here: " + Join({kAerCounters.begin(), kAerCounters.end()}, ", "));
  return false;
}

// A counter's setting replaces its default; false removes it.
void ReadCounter(const JsonValue& json, const std::string& name, std::vector<CounterLimit>& limits) {
  if (!json.is_there()) return;
  const auto found = std::ranges::find(limits, name, &CounterLimit::counter);
  const bool known = found != limits.end();
  if (*json.raw() == false) {
    if (known) limits.erase(found);
    return;
  }
  CounterLimit limit = known ? *found : CounterLimit{name, 0, seconds(0)};
  if (!record::ReadObject(json, limit, true)) return;
  if (known) {
    *found = std::move(limit);
  } else {
    limits.push_back(std::move(limit));
  }
}

}  // namespace

void ReadCounters(const JsonValue& json, HealthRule rule, std::vector<CounterLimit>& limits) {
  auto counters = json.Object();
  if (!counters) return;
  for (const std::string& name : counters->Keys()) {
    const JsonValue counter = counters->At(name);
    if (CheckName(counter, rule, name)) ReadCounter(counter, name, limits);
  }
}

// A default that is missing was removed.
OrderedJson WriteCounters(HealthRule rule, const std::vector<CounterLimit>& limits) {
  const HealthRules defaults;
  OrderedJson json = OrderedJson::object();
  for (const CounterLimit& limit : limits) json[limit.counter] = ToJson(limit);
  for (const CounterLimit& limit : defaults.Of(rule).counters) {
    if (!json.contains(limit.counter)) json[limit.counter] = false;
  }
  return json.empty() ? OrderedJson() : json;
}

OrderedJson CountersSchema(HealthRule rule) {
  OrderedJson limit = record::ObjectSchema(CounterLimit{});
  limit["type"] = OrderedJson::array({"object", "boolean", "null"});
  limit["not"] = {{"const", true}};
  limit["properties"]["limit"].erase("default");  // the counter's, if it has one
  OrderedJson schema{{"type", "object"}, {"additionalProperties", limit}};
  if (rule == HealthRule::kAer) schema["propertyNames"] = {{"enum", kAerCounters}};
  return schema;
}

void CheckRule(const RuleSettings& rule, const std::vector<std::string>& reporters,
               const record::Complain& complain) {
  if (rule.counters.size() > kMaxCounters)
    complain("counters", "more than " + std::to_string(kMaxCounters) + " counters");
  for (const std::string& name : reporters) {
    if (!IsName(name)) complain("reporters", "'" + name + "' is not a valid name of a health reporter");
  }
}

const std::array<HealthRule, kHealthRuleCount>& AllHealthRules() {
  using R = HealthRule;
  static constexpr std::array<HealthRule, kHealthRuleCount> kAll = {
      R::kLink,    R::kRdmaPort,  R::kGone,       R::kUnbound, R::kVfCount,  R::kAer,
      R::kDevlink, R::kErrorRate, R::kPauseStorm, R::kDrained, R::kNotReady, R::kNoAnswer};
  return kAll;
}

std::array<RuleSettings, kHealthRuleCount> DefaultRules() {
  std::array<RuleSettings, kHealthRuleCount> rules;
  const auto of = [&](HealthRule rule) -> RuleSettings& { return rules[static_cast<std::size_t>(rule)]; };
  of(HealthRule::kLink) = {true, seconds(10), seconds(60), {}};
  of(HealthRule::kRdmaPort) = {true, seconds(10), seconds(60), {}};
  of(HealthRule::kGone) = {true, seconds(2), seconds(5), {}};
  of(HealthRule::kUnbound) = {true, seconds(5), seconds(10), {}};
  // VFs that are there again are new ones.
  of(HealthRule::kVfCount) = {true, seconds(2), seconds(0), {}};
  of(HealthRule::kAer) = {true,
                          seconds(0),
                          seconds(60),
                          {{"aer_dev_fatal", 0, seconds(3600)}, {"aer_dev_nonfatal", 10, seconds(3600)}}};
  of(HealthRule::kDevlink) = {true, seconds(5), seconds(60), {}};
  of(HealthRule::kErrorRate) = {true,
                                seconds(0),
                                seconds(60),
                                {{"symbol_error", 120, seconds(3600)},
                                 {"link_error_recovery", 5, seconds(60)},
                                 {"link_downed", 2, seconds(600)},
                                 {"carrier_down_count", 2, seconds(600)},
                                 {"local_link_integrity_errors", 0, seconds(600)},
                                 {"excessive_buffer_overrun_errors", 0, seconds(600)}}};
  // Off by default: what others send can bring a host to pause the fabric. Alerts report it.
  of(HealthRule::kPauseStorm) = {
      false,
      seconds(0),
      seconds(60),
      {{"tx_pause_storm_error_events", 0, seconds(600)}, {"tx_pause_storm_warning_events", 5, seconds(600)}}};
  of(HealthRule::kDrained) = {true, seconds(0), seconds(0), {}};
  of(HealthRule::kNotReady) = {true, seconds(0), seconds(0), {}};
  // The deadline of a read has passed already (support/service/probe_workers.h).
  of(HealthRule::kNoAnswer) = {true, seconds(0), seconds(60), {}};
  return rules;
}

HealthRules ReadRecordedRules(JsonReader& parent) {
  RulesInRecording rules;
  record::ReadField(parent, "health", rules, {}, true);
  return rules;
}

HealthRules ReadHealthRules(JsonReader& parent) {
  HealthRules rules;
  record::ReadField(parent, "health", rules, {}, true);
  return rules;
}

Result<HealthRules> ParseHealthRules(const std::string& text, const std::string& what,
                                     std::vector<Error>* all) {
  return ParseSection<HealthRules>(text, what, "/health", all);
}

OrderedJson HealthRulesAsJson(const HealthRules& rules) {
  return ToJson(rules);
}

}  // namespace railhead::health
