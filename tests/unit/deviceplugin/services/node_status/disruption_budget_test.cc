// Never more nodes out of use than the budget says, whatever happens to requests.
#include "deviceplugin/services/node_status/disruption_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/ipam/support.h"
#include "tests/support/lease/memory_store.h"
#include "tests/support/seed.h"

namespace railhead::testing {
namespace {

using Fault = MemoryStore::Fault;

class DisruptionBudgetTest : public ::testing::Test {
 protected:
  struct Node {
    std::string name;
    std::unique_ptr<MemoryStore> store;
    std::unique_ptr<node_status::DisruptionBudget> budget;
    bool out = false;  // it knows that it has a place, and has not given it back
  };

  void Make(
      int count, const std::function<Fault()>& fault = [] { return Fault::kNone; }) {
    for (int i = 0; i < count; ++i) {
      Node node;
      node.name = "node" + std::to_string(i);
      node.store = std::make_unique<MemoryStore>(cluster_);
      node.store->fault = fault;
      nodes_.push_back(std::move(node));
      Restart(nodes_.back());
      Sign(nodes_.back());
    }
  }
  // A restarted railheadd does not know whether it has a place.
  void Restart(Node& node) {
    node.budget = std::make_unique<node_status::DisruptionBudget>(
        *node.store, node.name, [this](std::uint64_t below) { return random_() % below; });
    node.out = false;
  }
  void Sign(const Node& node) { (void)cluster_.Create(ipam::LeaseKey::Node(node.name), "{}"); }
  bool Acquire(Node& node, const node_status::MaxUnavailable& limit) {
    const auto taken = node.budget->Acquire(limit, 0);
    if (taken) node.out = *taken;
    return taken.value_or(false);
  }
  [[nodiscard]] std::size_t Out() const {
    std::size_t out = 0;
    for (const Node& node : nodes_) out += node.out ? 1 : 0;
    return out;
  }

  MemoryCluster cluster_;
  std::mt19937_64 random_{Seed()};
  std::vector<Node> nodes_;
};

TEST(MaxUnavailableTest, IsAtLeastOneNode) {
  EXPECT_EQ((node_status::MaxUnavailable{3, 0}).Of(100), 3U);
  EXPECT_EQ((node_status::MaxUnavailable{0, 10}).Of(100), 10U);
  EXPECT_EQ((node_status::MaxUnavailable{0, 10}).Of(9), 1U);
  EXPECT_EQ((node_status::MaxUnavailable{0, 100}).Of(0), 1U);
}

// The attack: all rails of all nodes seem dead at once.
TEST_F(DisruptionBudgetTest, OfAllNodesThatAskOnlySoManyAreOut) {
  Make(40);
  for (int round = 0; round < 3; ++round) {
    for (Node& node : nodes_) Acquire(node, {0, 10});
    EXPECT_EQ(Out(), 4U);
  }
  const auto first = std::find_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.out; });
  ASSERT_TRUE(first->budget->Release());
  first->out = false;
  EXPECT_EQ(first->budget->usage()->used, 3U);
  for (Node& node : nodes_) Acquire(node, {0, 10});
  EXPECT_EQ(Out(), 4U) << "the place that was given back is another's";
  EXPECT_EQ(nodes_.back().budget->usage()->used, 4U);
  EXPECT_EQ(nodes_.back().budget->usage()->limit, 4U);
}

TEST_F(DisruptionBudgetTest, APlaceOutlivesTheProcess) {
  Make(3);
  ASSERT_TRUE(Acquire(nodes_[0], {1, 0}));
  Restart(nodes_[0]);
  EXPECT_FALSE(Acquire(nodes_[1], {1, 0}));
  EXPECT_TRUE(Acquire(nodes_[0], {1, 0}));
  ASSERT_TRUE(nodes_[0].budget->Release());
  EXPECT_TRUE(Acquire(nodes_[1], {1, 0}));
}

// Its addresses were given to others: the node no longer belongs to the cluster.
TEST_F(DisruptionBudgetTest, ThePlaceOfANodeThatIsGoneIsFreeAgain) {
  Make(12);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Acquire(nodes_[static_cast<std::size_t>(i)], {3, 0}));
  EXPECT_FALSE(Acquire(nodes_[5], {3, 0}));
  const auto record = cluster_.Get(ipam::LeaseKey::Node(nodes_[1].name));
  ASSERT_TRUE(cluster_.Remove(**record));
  EXPECT_TRUE(Acquire(nodes_[5], {3, 0}));
  EXPECT_FALSE(Acquire(nodes_[6], {3, 0}));
}

TEST_F(DisruptionBudgetTest, ALowerLimitCountsThePlacesOfTheHigherOne) {
  Make(10);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Acquire(nodes_[static_cast<std::size_t>(i)], {5, 0}));
  EXPECT_FALSE(Acquire(nodes_[7], {2, 0}));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(nodes_[static_cast<std::size_t>(i)].budget->Release());
    EXPECT_EQ(Acquire(nodes_[7], {2, 0}), i == 3) << i;
  }
}

TEST_F(DisruptionBudgetTest, FieldsOfANewerVersionChangeNothing) {
  Make(2);
  ASSERT_TRUE(Acquire(nodes_[0], {2, 0}));
  const ipam::LeaseEntry own = cluster_.Blocks("0.0.0.0/32", 0, 10).front();
  ASSERT_TRUE(cluster_.Update(own, R"({"node": "node0", "since": 7})"));
  EXPECT_TRUE(Acquire(nodes_[0], {2, 0}));
  EXPECT_EQ(nodes_[0].budget->usage()->used, 1U);
}

// Any interleaving of requests, with lost and late answers. The number of places never exceeds the limit, and
// neither does the number of nodes that believe they have one.
TEST_F(DisruptionBudgetTest, WhateverGetsLostTheLimitHolds) {
  constexpr std::size_t kLimit = 3;
  const auto fault = [this] {
    const auto dice = random_() % 20;
    return dice < 5 ? static_cast<Fault>(dice) : Fault::kNone;
  };
  Make(15, fault);
  std::size_t most = 0;
  int taken = 0;
  for (int step = 0; step < 5000; ++step) {
    Node& node = nodes_[random_() % nodes_.size()];
    switch (random_() % 8) {
      case 0:
        Restart(node);
        break;
      case 1:
      case 2:
        node.out = false;  // a node that gives a place back is in use again
        (void)node.budget->Release();
        break;
      case 3:
        node.store->DeliverDelayed();
        break;
      default:
        taken += Acquire(node, {kLimit, 0}) ? 1 : 0;
    }
    std::set<std::string> holders;
    const auto places = cluster_.Blocks("0.0.0.0/32", 0, 100);
    for (const ipam::LeaseEntry& entry : places)
      holders.insert(nlohmann::json::parse(entry.value)["node"].get<std::string>());
    ASSERT_LE(places.size(), kLimit) << "step " << step;
    ASSERT_LE(Out(), kLimit) << "step " << step;
    most = std::max(most, Out());
  }
  EXPECT_EQ(most, kLimit);
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace railhead::testing
