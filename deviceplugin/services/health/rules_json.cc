#include "deviceplugin/services/health/rules_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace railhead {
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

}  // namespace railhead
