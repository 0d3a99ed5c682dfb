#include "deviceplugin/services/health/rules.h"

#include <gtest/gtest.h>

#include <set>

namespace railhead::testing {
namespace {

using std::chrono::seconds;

Result<health::HealthRules> Parse(const std::string& text) {
  const auto document = RH_TRY(JsonDocument::Parse(text, "config"));
  JsonReader reader = document.Root();
  health::HealthRules rules = health::ReadHealthRules(reader);
  reader.Close();
  RH_TRY(reader.status());
  return rules;
}

std::string ErrorOf(const std::string& text) {
  const auto rules = Parse(text);
  return rules ? "accepted" : Describe(rules.error());
}

const health::CounterLimit* Find(const health::RuleSettings& settings, const std::string& name) {
  for (const health::CounterLimit& limit : settings.counters) {
    if (limit.counter == name) return &limit;
  }
  return nullptr;
}

TEST(HealthRulesTest, NothingSaidIsTheDefault) {
  EXPECT_EQ(Parse("{}").value(), health::HealthRules());
  EXPECT_EQ(Parse(R"({"health": {}})").value(), health::HealthRules());
  EXPECT_EQ(Parse(R"({"health": true})").value(), health::HealthRules());
  for (const health::HealthRule rule : health::AllHealthRules())
    EXPECT_EQ(health::HealthRules().Of(rule).enabled, rule != health::HealthRule::kPauseStorm)
        << NameOf(rule);
}

TEST(HealthRulesTest, EachRuleIsSwitchedOffByItself) {
  for (const health::HealthRule rule : health::AllHealthRules()) {
    if (IsAlwaysOn(rule)) continue;
    const std::string name(NameOf(rule));
    for (const std::string& off : {std::string("false"), std::string(R"({"enabled": false})")}) {
      std::string text = R"({"health": {")";
      text.append(name).append("\": ").append(off).append("}}");
      const auto rules = Parse(text);
      ASSERT_TRUE(rules) << Describe(rules.error());
      health::HealthRules wanted;
      wanted.Of(rule).enabled = false;
      EXPECT_EQ(*rules, wanted) << name;
    }
    EXPECT_EQ(FromWord<health::HealthRule>(name), rule);
  }
  const auto none = Parse(R"({"health": false})").value();
  for (const health::HealthRule rule : health::AllHealthRules())
    EXPECT_EQ(none.Of(rule).enabled, IsAlwaysOn(rule)) << "what is on record is no setting";
  EXPECT_TRUE(
      Parse(R"({"health": {"pauseStorm": true}})").value().Of(health::HealthRule::kPauseStorm).enabled);
  EXPECT_FALSE(Parse(R"({"health": {"drained": false}})"));
  EXPECT_EQ(FromWord<health::HealthRule>("Link"), std::nullopt);
}

TEST(HealthRulesTest, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const health::HealthRule rule : health::AllHealthRules()) names.insert(NameOf(rule));
  EXPECT_EQ(names.size(), health::kHealthRuleCount);
}

TEST(HealthRulesTest, SettingsAreRead) {
  const auto rules = Parse(R"({"health": {
    "intervalSeconds": 2, "vfSeconds": 20, "counterSeconds": 40,
    "link": {"downAfter": 3, "upAfter": 4},
    "devlink": {"reporters": ["fw", "fw_fatal"]}}})");
  ASSERT_TRUE(rules) << Describe(rules.error());
  EXPECT_EQ(rules->interval, seconds(2));
  EXPECT_EQ(rules->vf_interval, seconds(20));
  EXPECT_EQ(rules->counter_interval, seconds(40));
  EXPECT_EQ(rules->Of(health::HealthRule::kLink), (health::RuleSettings{true, seconds(3), seconds(4), {}}));
  EXPECT_EQ(rules->reporters, (std::vector<std::string>{"fw", "fw_fatal"}));
}

TEST(HealthRulesTest, CountersAreTunedAddedAndRemoved) {
  const auto rules = Parse(R"({"health": {"errorRate": {"counters": {
    "symbol_error": {"limit": 7}, "link_downed": false,
    "rnr_nak_retry_err": {"limit": 0, "seconds": 600}}}}})");
  ASSERT_TRUE(rules) << Describe(rules.error());
  const health::RuleSettings& rate = rules->Of(health::HealthRule::kErrorRate);
  const auto* symbol = Find(rate, "symbol_error");
  ASSERT_NE(symbol, nullptr);
  EXPECT_EQ(*symbol, (health::CounterLimit{"symbol_error", 7, seconds(3600)}))
      << "the window is the default's";
  EXPECT_EQ(Find(rate, "link_downed"), nullptr);
  ASSERT_NE(Find(rate, "rnr_nak_retry_err"), nullptr);
  EXPECT_EQ(*Find(rate, "rnr_nak_retry_err"), (health::CounterLimit{"rnr_nak_retry_err", 0, seconds(600)}));
  EXPECT_NE(Find(rate, "link_error_recovery"), nullptr) << "the others stay";
}

TEST(HealthRulesTest, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"health": 3})", "config: /health: is not an object"},
      {R"({"health": {"lnik": false}})", "config: /health/lnik: unknown field; did you mean 'link'?"},
      {R"({"health": {"unreachable": true}})", "config: /health/unreachable: is no longer a setting"},
      {R"({"health": {"impaired": {"upAfter": 1}}})", "config: /health/impaired: is no longer a setting"},
      {R"({"health": {"link": 3}})", "config: /health/link: is not an object"},
      {R"({"health": {"link": {"downAfter": -1}}})", "/health/link/downAfter: -1 is out of range"},
      {R"({"health": {"link": {"upAfter": 1.5}}})", "/health/link/upAfter: is not an integer"},
      {R"({"health": {"link": {"dwonAfter": 1}}})", "/health/link/dwonAfter: unknown field; did you mean"},
      {R"({"health": {"link": {"counters": {}}}})", "/health/link/counters: unknown field"},
      {R"({"health": {"intervalSeconds": 0}})", "/health/intervalSeconds: 0 is out of range"},
      {R"({"health": {"aer": {"counters": {"aer_fatal": {"limit": 1, "seconds": 9}}}}})",
       "/health/aer/counters/aer_fatal: is not a counter of PCIe error reporting"},
      {R"({"health": {"errorRate": {"counters": {"new": {"limit": 1}}}}})",
       "/health/errorRate/counters/new/seconds: is required"},
      {R"({"health": {"errorRate": {"counters": {"symbol_error": {"seconds": 0}}}}})",
       "/health/errorRate/counters/symbol_error/seconds: 0 is out of range"},
      {R"({"health": {"errorRate": {"counters": {"symbol_error": {"limits": 1}}}}})",
       "/health/errorRate/counters/symbol_error/limits: unknown field"},
      {R"({"health": {"errorRate": {"counters": {"../../x": {"limit": 1, "seconds": 1}}}}})",
       "is not a valid counter name"},
      {R"({"health": {"errorRate": {"counters": {"symbol_error": true}}}})", "is not an object"},
      {R"({"health": {"devlink": {"reporters": ["a/b"]}}})",
       "/health/devlink/reporters: 'a/b' is not a valid name"},
  };
  for (const auto& [text, message] : wrong) {
    EXPECT_NE(ErrorOf(text).find(message), std::string::npos) << text << "\n" << ErrorOf(text);
  }
}

TEST(HealthRulesTest, CountersAreBounded) {
  std::string text = R"({"health": {"errorRate": {"counters": {)";
  for (int i = 0; i < 70; ++i) {
    text += (i == 0 ? "\"c" : ", \"c") + std::to_string(i) + R"(": {"limit": 1, "seconds": 9})";
  }
  EXPECT_NE(ErrorOf(text + "}}}}").find("more than 64 counters"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
