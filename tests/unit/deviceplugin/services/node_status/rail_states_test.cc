// Which rails are healthy, and what the node's condition and taint are then.
#include "deviceplugin/services/node_status/rail_states.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/node_status/rails_taint.h"
#include "tests/unit/deviceplugin/services/node_status/support.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

const std::map<std::string, std::string> kPfs = {{"rail0", kPfA}, {"rail1", kPfB}};

TEST(RailStatesTest, APfWithoutFaultIsAHealthyRail) {
  const auto rails = node_status::RailStates({"rail1", "rail0"}, kPfs,
                                             {PfHealth(kPfA, "pf0", {NoCarrier()}), PfHealth(kPfB, "")});
  ASSERT_TRUE(rails);
  ASSERT_EQ(rails->size(), 2U);
  EXPECT_EQ((*rails)[0].rail, "rail1") << "in the fabric's order";
  EXPECT_EQ((*rails)[0].pf, kPfB);
  EXPECT_TRUE((*rails)[0].healthy);
  EXPECT_FALSE((*rails)[1].healthy);
  EXPECT_EQ(HealthyRails(*rails), 1);
}

TEST(RailStatesTest, ARailWithoutPfIsUnhealthy) {
  const auto rails = node_status::RailStates({"rail0", "rail7"}, kPfs, {PfHealth(kPfA, "pf0")});
  ASSERT_TRUE(rails);
  EXPECT_FALSE((*rails)[1].healthy);
  EXPECT_EQ(ConditionOf(*rails).message, "1 of 2 rails are healthy; rail7: the node has no PF for it");
}

TEST(RailStatesTest, NothingIsSaidBeforeHealthIsKnown) {
  EXPECT_FALSE(node_status::RailStates({"rail0", "rail1"}, kPfs, {PfHealth(kPfA, "pf0")}));
}

TEST(RailStatesTest, TroubleOfAVfIsNoneOfTheRail) {
  const health::HealthReason unbound =
      Because(health::HealthRule::kUnbound, kVfA, "VF is bound to no driver");
  const auto rails =
      node_status::RailStates({"rail0"}, kPfs, {PfHealth(kPfA, "pf0"), VfHealth(kVfA, kPfA, {unbound})});
  ASSERT_TRUE(rails);
  EXPECT_TRUE(rails->front().healthy);
}

TEST(ConditionTest, NamesTheRailsAndWhy) {
  EXPECT_EQ(node_status::ConditionOf({Healthy("rail0"), Healthy("rail1")}),
            (node_status::RailsCondition{true, "AllRailsHealthy", "all 2 rails are healthy"}));
  EXPECT_EQ(node_status::ConditionOf({Healthy("rail0"), Broken("rail1"), Broken("rail2")}),
            (node_status::RailsCondition{
                false, "RailsUnhealthy",
                "1 of 3 rails are healthy; rail1: PF of rail1 is bad; rail2: PF of rail2 is bad"}));
}

TEST(ConditionTest, WhatAnOperatorWantedHasAReasonOfItsOwn) {
  EXPECT_EQ(
      node_status::ConditionOf({Healthy("rail0"), Broken("rail1", health::HealthRule::kDrained)}).reason,
      "RailsDrained");
  EXPECT_EQ(node_status::ConditionOf({Broken("rail0"), Broken("rail1", health::HealthRule::kDrained)}).reason,
            "RailsUnhealthy");
}

TEST(ConditionTest, WhatProbesSayHasAReasonOfItsOwn) {
  node_status::RailState silent = Healthy("rail1");
  silent.unreachable = "probes reach nothing: silent: gpu-002";
  EXPECT_EQ(
      node_status::ConditionOf({Healthy("rail0"), silent}),
      (node_status::RailsCondition{
          false, "RailsUnreachable",
          "2 of 2 rails are healthy, 1 of them unreachable; rail1: probes reach nothing: silent: gpu-002"}));
  EXPECT_FALSE(node_status::WantsTaint({}, {Healthy("rail0"), silent}));
  EXPECT_EQ(node_status::ConditionOf({Broken("rail0", health::HealthRule::kDrained), silent}).reason,
            "RailsUnreachable");
  EXPECT_EQ(node_status::ConditionOf({Broken("rail0"), silent}).reason, "RailsUnhealthy");
}

TEST(ConditionTest, ALongMessageIsCut) {
  std::vector<node_status::RailState> rails;
  for (int i = 0; i < 256; ++i) rails.push_back(Broken("rail" + std::to_string(i)));
  EXPECT_LT(ConditionOf(rails).message.size(), 1024U);
}

// For every number of healthy rails and every threshold.
TEST(TaintWantedTest, WhileFewerRailsAreHealthyThanWanted) {
  for (int healthy = 0; healthy <= 8; ++healthy) {
    std::vector<node_status::RailState> rails;
    for (int i = 0; i < 8; ++i) {
      const std::string name = "rail" + std::to_string(i);
      rails.push_back(i < healthy ? Healthy(name) : Broken(name));
    }
    EXPECT_EQ(WantsTaint({}, rails), healthy < 8);
    for (int below = 1; below <= 8; ++below) {
      node_status::TaintSettings settings;
      settings.when_rails_below = below;
      EXPECT_EQ(WantsTaint(settings, rails), healthy < below) << healthy << " " << below;
    }
  }
}

// Our taint among those of others.

Json Taint(const std::string& key, const std::string& effect) {
  return {{"key", key}, {"effect", effect}};
}

const Json kOther = {
    {"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}, {"timeAdded", "t"}};

TEST(TaintsTest, OursComesAndGoesAndOthersStay) {
  const Json ours = Taint(node_status::kRailsTaint, "NoSchedule");
  EXPECT_EQ(node_status::ChangedTaints(nullptr, "NoSchedule"), Json::array({ours}));
  EXPECT_EQ(node_status::ChangedTaints(Json::array({kOther}), "NoSchedule"), Json::array({kOther, ours}));
  EXPECT_EQ(node_status::ChangedTaints(Json::array({ours, kOther}), ""), Json::array({kOther}));
  EXPECT_EQ(node_status::ChangedTaints(Json::array({ours}), ""), Json::array());
}

TEST(TaintsTest, NothingIsWrittenWhenItIsSo) {
  const Json ours = Taint(node_status::kRailsTaint, "NoSchedule");
  EXPECT_EQ(node_status::ChangedTaints(nullptr, ""), std::nullopt);
  EXPECT_EQ(node_status::ChangedTaints(Json::array({kOther}), ""), std::nullopt);
  EXPECT_EQ(node_status::ChangedTaints(Json::array({kOther, ours}), "NoSchedule"), std::nullopt);
}

TEST(TaintsTest, AnotherEffectIsChangedAndTwoBecomeOne) {
  const Json soft = Taint(node_status::kRailsTaint, "PreferNoSchedule");
  const Json hard = Taint(node_status::kRailsTaint, "NoSchedule");
  EXPECT_EQ(node_status::ChangedTaints(Json::array({soft, kOther}), "NoSchedule"),
            Json::array({kOther, hard}));
  EXPECT_EQ(node_status::ChangedTaints(Json::array({soft, hard}), "NoSchedule"), Json::array({hard}));
  EXPECT_EQ(node_status::ChangedTaints(Json::array({soft, hard}), ""), Json::array());
}

// Whatever is there: the result has ours exactly as wanted, all others in their order, and wants no more.
TEST(TaintsTest, OnceIsEnough) {
  const std::vector<Json> some = {kOther, Taint(node_status::kRailsTaint, "NoSchedule"),
                                  Taint(node_status::kRailsTaint, "NoExecute"), Taint("a", "NoExecute"),
                                  Json("no taint")};
  for (unsigned mask = 0; mask < 1U << some.size(); ++mask) {
    Json taints = Json::array();
    Json others = Json::array();
    for (std::size_t i = 0; i < some.size(); ++i) {
      if ((mask >> i & 1U) == 0) continue;
      taints.push_back(some[i]);
      if (i != 1 && i != 2) others.push_back(some[i]);
    }
    for (const std::string effect : {"", "NoSchedule", "NoExecute"}) {
      Json now = node_status::ChangedTaints(taints, effect).value_or(taints);
      EXPECT_EQ(node_status::HasRailsTaint(now), !effect.empty());
      EXPECT_EQ(node_status::ChangedTaints(now, effect), std::nullopt) << now;
      const auto left = node_status::ChangedTaints(now, "").value_or(now);
      EXPECT_EQ(left, others);
    }
  }
}

// fabric.json's object `nodeStatus`.

node_status::NodeStatusSettings Parsed(const std::string& text) {
  const auto settings = node_status::ParseNodeStatusSettings(text, "fabric.json", 8);
  EXPECT_TRUE(settings) << text << ": " << settings.error().message;
  return settings.value_or(node_status::NodeStatusSettings{});
}

TEST(NodeStatusSettingsTest, NothingIsSpokenOfUnlessAsked) {
  EXPECT_FALSE(Parsed("").Any());
  EXPECT_FALSE(Parsed("{}").Any());
  EXPECT_FALSE(
      Parsed(R"({"kubernetes": {"timeoutSeconds": 7}, "nodeCondition": false, "events": false})").Any());
  EXPECT_TRUE(Parsed(R"({"nodeCondition": true})").node_condition);
  EXPECT_TRUE(Parsed(R"({"events": true})").events);
  EXPECT_TRUE(Parsed(R"({"events": true})").Any());
}

TEST(NodeStatusSettingsTest, TheTaint) {
  EXPECT_EQ(Parsed(R"({"taint": true})").taint, node_status::TaintSettings{});
  const auto settings = Parsed(R"({"taint": {"effect": "PreferNoSchedule", "whenRailsBelow": 7}})");
  ASSERT_TRUE(settings.taint);
  EXPECT_EQ(settings.taint->effect, node_status::TaintEffect::kPreferNoSchedule);
  EXPECT_EQ(settings.taint->when_rails_below, 7);
  EXPECT_TRUE(settings.taint->wanted);
  const auto none = Parsed(R"({"taint": false})");
  ASSERT_TRUE(none.taint);
  EXPECT_FALSE(none.taint->wanted) << "one from before is taken away";
  EXPECT_TRUE(none.Any());
}

TEST(NodeStatusSettingsTest, MistakesAreReportedWithTheirPlace) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"nodeConditions": true})", "/nodeStatus/nodeConditions"},
      {R"({"taint": "NoSchedule"})", "/nodeStatus/taint"},
      {R"({"taint": {"effect": "Never"}})", "/nodeStatus/taint/effect"},
      {R"({"taint": {"whenRailsBelow": 0}})", "/nodeStatus/taint/whenRailsBelow"},
      {R"({"taint": {"whenRailsBelow": 9}})", "the fabric has only 8 rails"},
      {R"({"taint": {"effect": "NoExecute"}})", "/nodeStatus/taint/effect"},
      {R"({"maxUnavailable": "5%"})", "/nodeStatus/maxUnavailable: is no longer a setting"},
      {R"({"kubernetes": {"kubeconfig": "here"}})", "/nodeStatus/kubernetes/kubeconfig"},
      {"7", "/nodeStatus"},
  };
  for (const auto& [text, word] : cases) {
    std::vector<Error> all;
    const auto settings = node_status::ParseNodeStatusSettings(text, "fabric.json", 8, &all);
    ASSERT_FALSE(settings) << text;
    ASSERT_EQ(all.size(), 1U) << text;
    EXPECT_NE(all[0].message.find(word), std::string::npos) << all[0].message;
  }
}

}  // namespace
}  // namespace railhead::testing
