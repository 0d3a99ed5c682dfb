// Which rails are whole, and what the node's condition and taint are then.
#include <gtest/gtest.h>

#include "deviceplugin/services/node_status/rail_states.h"
#include "tests/unit/deviceplugin/services/node_status/support.h"

namespace railhead::testing {
namespace {

const std::map<std::string, std::string> kPfs = {{"rail0", kPfA}, {"rail1", kPfB}};

TEST(RailStatesTest, APfWithoutTroubleIsAWholeRail) {
  const auto rails = node_status::RailStates({"rail1", "rail0"}, kPfs,
                                             {PfHealth(kPfA, "pf0", {NoCarrier()}), PfHealth(kPfB, "")});
  ASSERT_TRUE(rails);
  ASSERT_EQ(rails->size(), 2U);
  EXPECT_EQ((*rails)[0].rail, "rail1") << "in the fabric's order";
  EXPECT_EQ((*rails)[0].pf, kPfB);
  EXPECT_TRUE((*rails)[0].whole);
  EXPECT_FALSE((*rails)[1].whole);
  EXPECT_EQ(WholeRails(*rails), 1);
}

TEST(RailStatesTest, ARailWithoutPfIsNotWhole) {
  const auto rails = node_status::RailStates({"rail0", "rail7"}, kPfs, {PfHealth(kPfA, "pf0")});
  ASSERT_TRUE(rails);
  EXPECT_FALSE((*rails)[1].whole);
  EXPECT_EQ(ConditionOf(*rails).message, "1 of 2 rails are whole; rail7: the node has no PF for it");
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
  EXPECT_TRUE(rails->front().whole);
}

TEST(ConditionTest, NamesTheRailsAndWhy) {
  EXPECT_EQ(node_status::ConditionOf({Whole("rail0"), Whole("rail1")}),
            (node_status::RailsCondition{true, "AllRailsWhole", "all 2 rails are whole"}));
  EXPECT_EQ(node_status::ConditionOf({Whole("rail0"), Broken("rail1"), Broken("rail2")}),
            (node_status::RailsCondition{
                false, "RailsNotWhole",
                "1 of 3 rails are whole; rail1: PF of rail1 is bad; rail2: PF of rail2 is bad"}));
}

TEST(ConditionTest, WhatAnOperatorWantedHasAReasonOfItsOwn) {
  EXPECT_EQ(node_status::ConditionOf({Whole("rail0"), Broken("rail1", health::HealthRule::kDrained)}).reason,
            "RailsDrained");
  EXPECT_EQ(node_status::ConditionOf({Broken("rail0"), Broken("rail1", health::HealthRule::kDrained)}).reason,
            "RailsNotWhole");
}

TEST(ConditionTest, ALongMessageIsCut) {
  std::vector<node_status::RailState> rails;
  for (int i = 0; i < 256; ++i) rails.push_back(Broken("rail" + std::to_string(i)));
  EXPECT_LT(ConditionOf(rails).message.size(), 1024U);
}

// For every number of whole rails and every threshold.
TEST(TaintWantedTest, WhileFewerRailsAreWholeThanWanted) {
  for (int whole = 0; whole <= 8; ++whole) {
    std::vector<node_status::RailState> rails;
    for (int i = 0; i < 8; ++i) {
      const std::string name = "rail" + std::to_string(i);
      rails.push_back(i < whole ? Whole(name) : Broken(name));
    }
    EXPECT_EQ(WantsTaint({}, rails), whole < 8);
    for (int below = 1; below <= 8; ++below) {
      node_status::TaintSettings settings;
      settings.when_rails_below = below;
      EXPECT_EQ(WantsTaint(settings, rails), whole < below) << whole << " " << below;
    }
  }
}

}  // namespace
}  // namespace railhead::testing
