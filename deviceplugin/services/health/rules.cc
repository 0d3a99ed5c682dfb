#include "deviceplugin/services/health/rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "netns/base/text.h"

namespace railhead::health {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kMaxSeconds = 86400;
constexpr std::int64_t kMaxInterval = 3600;
// One second's resolution of a window of a day would not be kept; see RateWindow.
constexpr std::int64_t kMinWindow = 1;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxCounters = 64;

bool HasCounters(HealthRule rule) {
  return rule == HealthRule::kAer || rule == HealthRule::kErrorRate || rule == HealthRule::kPauseStorm;
}

// Names become parts of paths below /sys.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f && c != '/'; });
}

const std::vector<std::string>& AerCounters() {
  static const std::vector<std::string> names = {"aer_dev_correctable", "aer_dev_fatal", "aer_dev_nonfatal"};
  return names;
}

bool CheckCounter(JsonReader& counters, HealthRule rule, const std::string& name) {
  if (!IsName(name)) {
    counters.Fail(name, "is no name of a counter");
    return false;
  }
  const auto& aer = AerCounters();
  if (rule != HealthRule::kAer || Contains(aer, name)) return true;
  counters.Fail(name, "is no counter of PCIe error reporting", "known here: " + Join(aer, ", "));
  return false;
}

// What is given for a counter replaces its default; false removes it.
void ReadCounter(JsonReader& counters, const std::string& name, std::vector<CounterLimit>* limits) {
  const auto* raw = counters.Raw(name);
  if (raw == nullptr) return;
  const auto found = std::ranges::find(*limits, name, &CounterLimit::counter);
  if (raw->is_boolean() && !raw->get<bool>()) {
    if (found != limits->end()) limits->erase(found);
    return;
  }
  auto object = counters.Object(name);
  if (!object) return;
  CounterLimit limit = found != limits->end() ? *found : CounterLimit{name, 0, seconds(0)};
  if (const auto value = object->Int("limit", 0, INT64_MAX)) limit.limit = static_cast<std::uint64_t>(*value);
  if (const auto value = object->Int("seconds", kMinWindow, kMaxSeconds)) limit.window = seconds(*value);
  object->Close();
  if (limit.window.count() == 0) object->Fail("seconds", "is required for a counter that has no default");
  if (found != limits->end()) {
    *found = std::move(limit);
  } else {
    limits->push_back(std::move(limit));
  }
}

void ReadCounters(JsonReader& settings, HealthRule rule, std::vector<CounterLimit>* limits) {
  auto counters = settings.Object("counters");
  if (!counters) return;
  for (const std::string& name : counters->Keys()) {
    if (!CheckCounter(*counters, rule, name)) return;
    ReadCounter(*counters, name, limits);
  }
  if (limits->size() > kMaxCounters) {
    settings.Fail("counters", "more than " + std::to_string(kMaxCounters) + " counters");
  }
}

void ReadReporters(JsonReader& settings, std::vector<std::string>* reporters) {
  auto names = settings.Strings("reporters");
  if (!names) return;
  for (const std::string& name : *names) {
    if (!IsName(name)) settings.Fail("reporters", "'" + name + "' is no name of a health reporter");
  }
  *reporters = *std::move(names);
}

void ReadRule(JsonReader& health, HealthRule rule, HealthRules* rules) {
  const std::string key(NameOf(rule));
  RuleSettings& settings = rules->Of(rule);
  const auto* raw = health.Raw(key);
  if (raw == nullptr) return;
  if (raw->is_boolean()) {
    settings.enabled = raw->get<bool>();
    return;
  }
  auto object = health.Object(key);
  if (!object) return;
  settings.enabled = object->Bool("enabled").value_or(settings.enabled);
  if (const auto value = object->Int("downAfter", 0, kMaxSeconds)) settings.down_after = seconds(*value);
  if (const auto value = object->Int("upAfter", 0, kMaxSeconds)) settings.up_after = seconds(*value);
  if (HasCounters(rule)) ReadCounters(*object, rule, &settings.counters);
  if (rule == HealthRule::kDevlink) ReadReporters(*object, &rules->reporters);
  object->Close();
}

}  // namespace

const std::array<HealthRule, kHealthRuleCount>& AllHealthRules() {
  using R = HealthRule;
  static constexpr std::array<HealthRule, kHealthRuleCount> kAll = {
      R::kLink,      R::kRdmaPort,   R::kGone,        R::kUnbound,  R::kVfCount, R::kAer,     R::kDevlink,
      R::kErrorRate, R::kPauseStorm, R::kUnreachable, R::kImpaired, R::kDrained, R::kNotReady};
  return kAll;
}

HealthRules DefaultHealthRules() {
  HealthRules rules;
  rules.Of(HealthRule::kLink) = {true, seconds(10), seconds(60), {}};
  rules.Of(HealthRule::kRdmaPort) = {true, seconds(10), seconds(60), {}};
  rules.Of(HealthRule::kGone) = {true, seconds(2), seconds(5), {}};
  rules.Of(HealthRule::kUnbound) = {true, seconds(5), seconds(10), {}};
  // VFs that are there again were made anew.
  rules.Of(HealthRule::kVfCount) = {true, seconds(2), seconds(0), {}};
  rules.Of(HealthRule::kAer) = {
      true,
      seconds(0),
      seconds(60),
      {{"aer_dev_fatal", 0, seconds(3600)}, {"aer_dev_nonfatal", 10, seconds(3600)}}};
  rules.Of(HealthRule::kDevlink) = {true, seconds(5), seconds(60), {}};
  rules.Of(HealthRule::kErrorRate) = {true,
                                      seconds(0),
                                      seconds(60),
                                      {{"symbol_error", 120, seconds(3600)},
                                       {"link_error_recovery", 5, seconds(60)},
                                       {"link_downed", 2, seconds(600)},
                                       {"carrier_down_count", 2, seconds(600)},
                                       {"local_link_integrity_errors", 0, seconds(600)},
                                       {"excessive_buffer_overrun_errors", 0, seconds(600)},
                                       {"port_xmit_discards", 6000, seconds(60)}}};
  rules.Of(HealthRule::kPauseStorm) = {
      true,
      seconds(0),
      seconds(60),
      {{"tx_pause_storm_error_events", 0, seconds(600)}, {"tx_pause_storm_warning_events", 5, seconds(600)}}};
  // Off: one switch that drops probes and nothing else would take a whole cluster's rails. Probes have been
  // confirmed by then; what is back has to stay for some rounds.
  rules.Of(HealthRule::kUnreachable) = {false, seconds(0), seconds(120), {}};
  // Off for the same reason. Loss may pass.
  rules.Of(HealthRule::kImpaired) = {false, seconds(60), seconds(120), {}};
  rules.Of(HealthRule::kDrained) = {true, seconds(0), seconds(0), {}};
  rules.Of(HealthRule::kNotReady) = {true, seconds(0), seconds(0), {}};
  rules.reporters = {"fw_fatal"};
  return rules;
}

HealthRules ReadHealthRules(JsonReader& parent, const std::string& key) {
  HealthRules rules = DefaultHealthRules();
  const auto* raw = parent.Raw(key);
  if (raw == nullptr) return rules;
  if (raw->is_boolean()) {
    if (raw->get<bool>()) return rules;
    for (const HealthRule rule : AllHealthRules()) rules.Of(rule).enabled = IsAlwaysOn(rule);
    return rules;
  }
  auto health = parent.Object(key);
  if (!health) return rules;
  const auto read = [&](const char* name, seconds* value) {
    if (const auto given = health->Int(name, 1, kMaxInterval)) *value = seconds(*given);
  };
  read("intervalSeconds", &rules.interval);
  read("vfSeconds", &rules.vf_interval);
  read("counterSeconds", &rules.counter_interval);
  for (const HealthRule rule : AllHealthRules()) {
    if (!IsAlwaysOn(rule)) ReadRule(*health, rule, &rules);
  }
  health->Close();
  return rules;
}

Result<HealthRules> ParseHealthRules(const std::string& text, const std::string& what,
                                     std::vector<Error>* all) {
  if (text.empty()) return DefaultHealthRules();
  const JsonDocument document = RH_TRY(JsonDocument::Parse(R"({"health":)" + text + "}", what));
  JsonReader reader = document.Root();
  HealthRules rules = ReadHealthRules(reader, "health");
  if (all != nullptr) *all = reader.errors();
  RH_TRY(reader.status());
  return rules;
}

namespace {

using OrderedJson = nlohmann::ordered_json;

// A default that is not there was removed.
OrderedJson LimitsJson(const RuleSettings& settings, const RuleSettings& defaults) {
  OrderedJson json = OrderedJson::object();
  for (const CounterLimit& limit : settings.counters)
    json[limit.counter] = {{"limit", limit.limit}, {"seconds", limit.window.count()}};
  for (const CounterLimit& limit : defaults.counters) {
    if (!json.contains(limit.counter)) json[limit.counter] = false;
  }
  return json;
}

}  // namespace

OrderedJson HealthRulesAsJson(const HealthRules& rules) {
  const HealthRules defaults = DefaultHealthRules();
  OrderedJson json = {{"intervalSeconds", rules.interval.count()},
                      {"vfSeconds", rules.vf_interval.count()},
                      {"counterSeconds", rules.counter_interval.count()}};
  for (const HealthRule rule : AllHealthRules()) {
    if (IsAlwaysOn(rule)) continue;
    const RuleSettings& settings = rules.Of(rule);
    OrderedJson one = {{"enabled", settings.enabled},
                       {"downAfter", settings.down_after.count()},
                       {"upAfter", settings.up_after.count()}};
    auto limits = LimitsJson(settings, defaults.Of(rule));
    if (!limits.empty()) one["counters"] = std::move(limits);
    if (rule == HealthRule::kDevlink) one["reporters"] = rules.reporters;
    json[std::string(NameOf(rule))] = std::move(one);
  }
  return json;
}

}  // namespace railhead::health
