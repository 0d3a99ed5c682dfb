// Our taint among those of others.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "deviceplugin/services/node_status/rail_states.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

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

}  // namespace
}  // namespace railhead::testing
