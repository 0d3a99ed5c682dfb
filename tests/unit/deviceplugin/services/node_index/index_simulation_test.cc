// 1,250 nodes that start at once each have an index soon. A list is up to a second old when its claim
// arrives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/node_index/index_claim.h"
#include "tests/support/seed.h"
#include "tests/unit/deviceplugin/services/node_index/index_support.h"

namespace railhead::node_index {
namespace {

using testing::IndexCluster;
using testing::MemoryIndexStore;
using Fault = testing::MemoryIndexStore::Fault;

constexpr int kNodes = 1250;
constexpr int kMostWrites = 5;
constexpr int kSlack = 48;
constexpr std::uint64_t kSettledMs = 2 * 3'600'000;

struct StartOptions {
  std::uint64_t longest_ms = 1000;  // from a list to its claim
  std::uint64_t spread_ms = 0;      // of the nodes' starts
  double lost = 0;                  // answers, requests and late requests
  double killed = 0;                // daemons, after a step
};

class MassStart {
 public:
  MassStart(const StartOptions& options, std::uint64_t seed) : options_(options), random_(seed) {
    for (std::size_t i = 0; i < kNodes; ++i) {
      nodes_.push_back(
          {.name = "gpu-" + std::to_string(i), .disk = std::nullopt, .store = nullptr, .claim = nullptr});
      cluster_.nodes[nodes_.back().name] = {"uid-" + std::to_string(i), ""};
    }
    for (std::size_t i = 0; i < kNodes; ++i) {
      Restart(nodes_[i]);
      Plan(i, Below(options.spread_ms + 1));
    }
  }

  void Run() {
    while (!due_.empty() && due_.top().at_ms < kSettledMs) {
      const Due due = due_.top();
      due_.pop();
      Step(due);
    }
  }

  // Each node has one index and knows it, and no index is far above the number of nodes.
  void ExpectSettled() const {
    std::map<std::string, int> claims;
    for (const auto& [index, holder] : cluster_.Holders()) {
      EXPECT_LT(index, kNodes + kSlack);
      EXPECT_TRUE(claims.emplace(holder, index).second) << holder << " has two";
    }
    EXPECT_EQ(claims.size(), static_cast<std::size_t>(kNodes));
    for (const Node& node : nodes_) {
      ASSERT_TRUE(node.disk && node.disk->claimed) << node.name;
      EXPECT_EQ(claims[node.name], node.disk->index);
    }
  }
  [[nodiscard]] int MostWrites() const {
    int most = 0;
    for (const Node& node : nodes_) most = std::max(most, node.writes + node.store->writes());
    return most;
  }

 private:
  struct Node {
    std::string name;
    std::optional<NodeIndex> disk;
    std::unique_ptr<MemoryIndexStore> store;
    std::unique_ptr<IndexClaim> claim;
    int writes = 0;  // of earlier daemons
  };
  struct Due {
    std::uint64_t at_ms = 0;  // when the claim arrives
    std::uint64_t listed_ms = 0;
    std::size_t node = 0;
    bool operator>(const Due& other) const { return at_ms > other.at_ms; }
  };

  std::uint64_t Below(std::uint64_t end) { return random_() % end; }
  bool Happens(double chance) { return std::uniform_real_distribution<double>(0, 1)(random_) < chance; }

  void Restart(Node& node) {
    if (node.store) node.writes += node.store->writes();
    node.store = std::make_unique<MemoryIndexStore>(cluster_);
    node.store->is_seen = [this](std::uint64_t index) {
      const auto made = made_ms_.find(index);
      return made == made_ms_.end() || made->second <= listed_ms_;
    };
    node.store->fault = [this] {
      if (!Happens(options_.lost)) return Fault::kNone;
      return std::vector{Fault::kTimeoutBefore, Fault::kTimeoutAfter, Fault::kDelayed}.at(Below(3));
    };
    node.claim = std::make_unique<IndexClaim>(
        IndexSettings{.node = node.name, .machine = {}, .reclaim = {}}, *node.store,
        IndexFile{[&node]() -> Result<std::optional<NodeIndex>> { return node.disk; },
                  [&node](const NodeIndex& index) -> Result<void> {
                    node.disk = index;
                    return {};
                  }},
        [this] { return random_(); });
  }

  void Plan(std::size_t node, std::uint64_t from_ms) {
    due_.push({from_ms + Below(options_.longest_ms + 1), from_ms, node});
  }

  void Step(const Due& due) {
    Node& node = nodes_[due.node];
    listed_ms_ = due.listed_ms;
    node.store->DeliverDelayed();
    (void)node.claim->Step({"boot", due.at_ms, 1'800'000'000}, {std::nullopt, [](int) { return true; }});
    if (cluster_.claims.records().size() != made_ms_.size()) {
      for (const auto& [index, value] : cluster_.claims.records()) made_ms_.try_emplace(index, due.at_ms);
    }
    const std::uint64_t next_ms = std::max(node.claim->next_ms(), due.at_ms + 1);
    if (Happens(options_.killed)) Restart(node);
    // What is confirmed needs no more steps here, if nothing can go wrong.
    if (node.disk && node.disk->claimed && options_.lost == 0 && options_.killed == 0) return;
    Plan(due.node, next_ms);
  }

  const StartOptions options_;
  std::mt19937_64 random_;
  IndexCluster cluster_;
  std::vector<Node> nodes_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::map<std::uint64_t, std::uint64_t> made_ms_;  // by index
  std::uint64_t listed_ms_ = 0;                     // of the present step's list
};

TEST(IndexSimulation, NodesThatStartAtOnceNeedFewWrites) {
  const std::uint64_t seed = testing::Seed();
  for (const StartOptions& options : {StartOptions{}, StartOptions{.longest_ms = 0},
                                      StartOptions{.longest_ms = 500, .spread_ms = 10'000}}) {
    MassStart start(options, seed);
    start.Run();
    start.ExpectSettled();
    EXPECT_LE(start.MostWrites(), kMostWrites) << options.longest_ms;
  }
}

// Repetitions are writes, too: how many depends on the faults alone.
TEST(IndexSimulation, LostAnswersAndKillsLeaveOneClaimEach) {
  MassStart start({.longest_ms = 500, .lost = 0.1, .killed = 0.05}, testing::Seed());
  start.Run();
  start.ExpectSettled();
}

// Most nodes are removed at once: those that are left free all of their indices, in the time that one needs.
TEST(IndexSimulation, IndicesOfManyRemovedNodesAreFreedTogether) {
  constexpr std::uint64_t kCheckMs = 3 * testing::kHourMs;
  constexpr std::uint64_t kReclaimMs = 24 * testing::kHourMs;
  for (const int left : {1, 3}) {
    IndexCluster cluster;
    for (int i = 0; i < kNodes; ++i) {
      const std::string name = "gpu-" + std::to_string(i);
      ASSERT_TRUE(cluster.claims.Create(static_cast<std::uint64_t>(i),
                                        Encode(IndexRecord{name, "uid-of-" + name, ""})));
    }
    std::vector<std::unique_ptr<testing::TestNode>> nodes;
    for (int i = 0; i < left; ++i) {
      nodes.push_back(std::make_unique<testing::TestNode>(cluster, "gpu-" + std::to_string(i * 400)));
      nodes.back()->needs.fits = [](int) { return true; };
    }
    // Some checks meet a request that fails.
    std::mt19937_64 random(testing::Seed());
    for (const auto& node : nodes)
      node->store().node_fails = [&](const auto&) { return random() % 5000 == 0; };
    std::uint64_t passed_ms = 0;
    for (; cluster.Holders().size() > nodes.size(); passed_ms += testing::kHourMs) {
      ASSERT_LE(passed_ms, kReclaimMs + 2 * kCheckMs) << cluster.Holders().size() << " are left";
      for (const auto& node : nodes) node->Pass(testing::kHourMs);
    }
    EXPECT_GE(passed_ms, kReclaimMs);
  }
}

}  // namespace
}  // namespace railhead::node_index
