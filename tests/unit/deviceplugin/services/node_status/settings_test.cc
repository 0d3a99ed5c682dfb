// fabric.json's object `isolation`.
#include <gtest/gtest.h>

#include "deviceplugin/services/node_status/rail_states.h"

namespace railhead::testing {
namespace {

node_status::IsolationSettings Parsed(const std::string& text) {
  const auto settings = node_status::ParseIsolation(text, "fabric.json", 8);
  EXPECT_TRUE(settings) << text << ": " << settings.error().message;
  return settings.value_or(node_status::IsolationSettings{});
}

TEST(IsolationSettingsTest, NothingIsSpokenOfUnlessAsked) {
  EXPECT_FALSE(Parsed("").Any());
  EXPECT_FALSE(Parsed("{}").Any());
  EXPECT_FALSE(
      Parsed(R"({"kubernetes": {"timeoutSeconds": 7}, "nodeCondition": false, "events": false})").Any());
  EXPECT_TRUE(Parsed(R"({"nodeCondition": true})").node_condition);
  EXPECT_TRUE(Parsed(R"({"events": true})").events);
  EXPECT_TRUE(Parsed(R"({"events": true})").Any());
}

TEST(IsolationSettingsTest, TheTaint) {
  EXPECT_EQ(Parsed(R"({"taint": true})").taint, node_status::TaintSettings{});
  const auto settings = Parsed(R"({"taint": {"effect": "PreferNoSchedule", "whenRailsBelow": 7}})");
  ASSERT_TRUE(settings.taint);
  EXPECT_EQ(settings.taint->effect, "PreferNoSchedule");
  EXPECT_EQ(settings.taint->when_rails_below, 7);
  EXPECT_FALSE(settings.no_taint);
  const auto none = Parsed(R"({"taint": false})");
  EXPECT_FALSE(none.taint);
  EXPECT_TRUE(none.no_taint) << "one from before is taken away";
  EXPECT_TRUE(none.Any());
}

TEST(IsolationSettingsTest, HowManyNodesMayBeOut) {
  EXPECT_EQ(Parsed("{}").max_unavailable, (node_status::MaxUnavailable{0, 10}));
  EXPECT_EQ(Parsed(R"({"maxUnavailable": 5})").max_unavailable, (node_status::MaxUnavailable{5, 0}));
  EXPECT_EQ(Parsed(R"({"maxUnavailable": "25%"})").max_unavailable, (node_status::MaxUnavailable{0, 25}));
}

TEST(IsolationSettingsTest, MistakesAreToldWithTheirPlace) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"nodeConditions": true})", "/isolation/nodeConditions"},
      {R"({"taint": "NoSchedule"})", "/isolation/taint"},
      {R"({"taint": {"effect": "Never"}})", "/isolation/taint/effect"},
      {R"({"taint": {"whenRailsBelow": 0}})", "/isolation/taint/whenRailsBelow"},
      {R"({"taint": {"whenRailsBelow": 9}})", "the fabric has only 8 rails"},
      {R"({"maxUnavailable": 0})", "/isolation/maxUnavailable"},
      {R"({"maxUnavailable": "0%"})", "/isolation/maxUnavailable"},
      {R"({"maxUnavailable": "101%"})", "/isolation/maxUnavailable"},
      {R"({"maxUnavailable": "5"})", "/isolation/maxUnavailable"},
      {R"({"maxUnavailable": true})", "/isolation/maxUnavailable"},
      {R"({"kubernetes": {"kubeconfig": "here"}})", "/isolation/kubernetes/kubeconfig"},
      {"7", "/isolation"},
  };
  for (const auto& [text, word] : cases) {
    std::vector<Error> all;
    const auto settings = node_status::ParseIsolation(text, "fabric.json", 8, &all);
    ASSERT_FALSE(settings) << text;
    ASSERT_EQ(all.size(), 1U) << text;
    EXPECT_NE(all[0].message.find(word), std::string::npos) << all[0].message;
  }
}

}  // namespace
}  // namespace railhead::testing
