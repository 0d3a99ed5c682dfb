// lease_scale [NODES [RAILS]]: what a cluster of that size asks of its cluster store.
//
// Leasers with books in memory, one cluster store in memory that serves kCapacity requests a
// second, one after the other, and simulated time. Prints the numbers of docs/operate/sizing.md;
// fails when a step asks for more than it may.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "ipam/lease/leaser.h"
#include "netns/base/text.h"
#include "tests/support/ipam/support.h"
#include "tests/support/lease/memory_store.h"

namespace railhead::testing {
namespace {

constexpr double kCapacity = 5000;  // requests per second
constexpr double kRoundTripMs = 1;
constexpr double kStartWithinMs = 60'000;
constexpr std::uint64_t kBlockSize = 64;

class MemoryLeaseState : public ipam::LeaseStateStore {
 public:
  Result<ipam::LeaseState> Read() override { return state_; }
  Result<void> Write(const ipam::LeaseStateChange& change) override {
    if (change.lease) state_.lease = change.lease;
    for (const ipam::BlockName& name : change.erase) Erase(name);
    for (const ipam::NodeBlock& block : change.put) {
      Erase(NameOf(block));
      state_.blocks.push_back(block);
    }
    return {};
  }
  Result<std::vector<std::uint64_t>> CountInUse(const std::vector<ipam::NodeBlock>& blocks) override {
    return std::vector<std::uint64_t>(blocks.size(), 0);
  }
  Result<std::vector<ipam::AddressRecord>> HeldIn(const ipam::NodeBlock&) override {
    return std::vector<ipam::AddressRecord>{};
  }
  Result<bool> Retire(const ipam::NodeBlock&) override { return false; }

  [[nodiscard]] bool Serves(std::size_t pools, const ipam::ClockReading& now) const {
    if (!state_.lease || !state_.lease->CheckValid(now)) return false;
    const auto usable =
        std::count_if(state_.blocks.begin(), state_.blocks.end(),
                      [](const ipam::NodeBlock& block) { return block.state == ipam::BlockState::kUsable; });
    return static_cast<std::size_t>(usable) >= pools;
  }

 private:
  void Erase(const ipam::BlockName& name) {
    std::erase_if(state_.blocks, [&](const ipam::NodeBlock& block) { return NameOf(block) == name; });
  }
  ipam::LeaseState state_;
};

struct Node {
  std::string name;
  std::unique_ptr<MemoryStore> store;
  std::unique_ptr<MemoryLeaseState> lease_state;
  std::unique_ptr<ipam::Leaser> leaser;
  int boot = 0;
  double boot_ms = 0;
  double asked_ms = 0;  // when its last answer came
  bool serves = false;
};

struct Phase {
  std::uint64_t calls = 0;
  double begin_ms = 0;
  double end_ms = 0;
  std::map<std::uint64_t, std::uint64_t> by_second;

  [[nodiscard]] std::uint64_t Peak() const {
    std::uint64_t peak = 0;
    for (const auto& [second, count] : by_second) peak = std::max(peak, count);
    return peak;
  }
};

class Cluster {
 public:
  Cluster(int nodes, int rails) {
    for (int rail = 0; rail < rails; ++rail)
      subnets_.push_back("10." + std::to_string(16 * rail) + ".0.0/12");
    for (int i = 0; i < nodes; ++i) {
      Node node;
      node.name = "node-" + std::to_string(i);
      node.store = std::make_unique<MemoryStore>(records_);
      node.lease_state = std::make_unique<MemoryLeaseState>();
      nodes_.push_back(std::move(node));
    }
    for (Node& node : nodes_) {
      node.store->fault = [this, &node] {
        Ask(node);
        return MemoryStore::Fault::kNone;
      };
    }
  }

  // All machines, within a minute.
  void Boot() {
    queue_ = {};
    serving_ = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      node.boot_ms = now_ms_ + kStartWithinMs * static_cast<double>(random_() % 1000) / 1000;
      ++node.boot;
      node.serves = false;
      node.leaser = std::make_unique<ipam::Leaser>(SettingsOf(node), *node.store, *node.lease_state,
                                                   [this] { return random_(); });
      queue_.push({node.boot_ms, i});
    }
  }
  // Until all serve, or for `ms`.
  Phase Run(double ms) {
    phase_ = {};
    phase_.begin_ms = now_ms_;
    const double end = now_ms_ + (ms > 0 ? ms : 1e9);
    while (!queue_.empty() && queue_.top().first < end && (ms > 0 || serving_ < nodes_.size())) {
      const auto [at, index] = queue_.top();
      queue_.pop();
      now_ms_ = std::max(now_ms_, at);
      Step(index);
    }
    if (ms > 0) now_ms_ = end;
    phase_.end_ms = now_ms_;
    return phase_;
  }
  void LoseAll() { records_.Restore({}); }
  [[nodiscard]] std::size_t BlocksMissing() const {
    std::size_t blocks = 0;
    for (const auto& [key, value] : records_.records())
      blocks += key.kind == ipam::LeaseKey::Kind::kBlock && key.index != ipam::kLayoutIndex ? 1 : 0;
    return nodes_.size() * subnets_.size() - std::min(blocks, nodes_.size() * subnets_.size());
  }
  void PrintRecords() const {
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> sizes;  // count, bytes
    for (const auto& [key, value] : records_.records()) {
      const bool block = key.kind == ipam::LeaseKey::Kind::kBlock;
      auto& size = sizes[block ? (key.index == ipam::kLayoutIndex ? "layout" : "block") : "node"];
      ++size.first;
      size.second += value.text.size();
    }
    for (const auto& [what, size] : sizes) {
      std::printf("%s records: %llu of %llu bytes each\n", what.c_str(),
                  static_cast<unsigned long long>(size.first),
                  static_cast<unsigned long long>(size.second / size.first));
    }
  }

 private:
  [[nodiscard]] ipam::LeaseSettings SettingsOf(const Node& node) const {
    ipam::LeaseSettings settings{node.name, "machine of " + node.name, {}, kBlockSize / 2, {}};
    for (const std::string& subnet : subnets_)
      settings.pools.push_back(ipam::PoolLayout::Make(MakePool(subnet, {}, 0).ranges, kBlockSize).value());
    return settings;
  }
  void Ask(Node& node) {
    constexpr double kServiceMs = 1000 / kCapacity;
    busy_until_ms_ = std::max(busy_until_ms_, now_ms_) + kServiceMs;
    node.asked_ms = std::max(node.asked_ms + kServiceMs, busy_until_ms_) + kRoundTripMs;
    ++phase_.calls;
    ++phase_.by_second[static_cast<std::uint64_t>(busy_until_ms_ / 1000)];
  }
  void Step(std::size_t index) {
    Node& node = nodes_[index];
    node.asked_ms = now_ms_;
    const ipam::ClockReading now{"boot-" + std::to_string(node.boot),
                                 static_cast<std::uint64_t>(now_ms_ - node.boot_ms) + 1000, 0};
    const auto outcome = node.leaser->Step(now);
    if (outcome.problem) std::printf("%s: %s\n", node.name.c_str(), Describe(*outcome.problem).c_str());
    const bool serves = node.lease_state->Serves(subnets_.size(), now);
    if (serves != node.serves) serving_ += serves ? 1 : -1;
    node.serves = serves;
    const double next = now_ms_ + std::max<double>(1, static_cast<double>(outcome.wait.count()));
    queue_.push({std::max(next, node.asked_ms), index});
  }

  MemoryCluster records_;
  std::vector<std::string> subnets_;
  std::vector<Node> nodes_;
  using Due = std::pair<double, std::size_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> queue_;
  // The same numbers each time.
  // NOLINTNEXTLINE(cert-msc32-c,cert-msc51-cpp)
  std::mt19937_64 random_{1};
  double now_ms_ = 0;
  double busy_until_ms_ = 0;
  std::size_t serving_ = 0;
  Phase phase_;
};

void Print(const char* what, const Phase& phase, int nodes) {
  const double seconds = (phase.end_ms - phase.begin_ms) / 1000;
  std::printf("%-44s %8.1f s  %8llu calls  %6.2f per node  %7.1f per second, at most %llu\n", what, seconds,
              static_cast<unsigned long long>(phase.calls), static_cast<double>(phase.calls) / nodes,
              static_cast<double>(phase.calls) / seconds, static_cast<unsigned long long>(phase.Peak()));
}

bool Bound(const char* what, double value, double limit) {
  if (value <= limit) return true;
  std::printf("FAILED: %s: %.2f, at most %.2f\n", what, value, limit);
  return false;
}

// 0: none that makes sense.
int NumberOf(const char* text) {
  return static_cast<int>(std::clamp(ParseInt(text).value_or(0), std::int64_t{0}, std::int64_t{1'000'000}));
}

int Main(int nodes, int rails) {
  std::printf(
      "%d nodes, %d rails of a /12 each, blocks of %llu, renewSeconds 60; a store that serves %.0f calls/s\n",
      nodes, rails, static_cast<unsigned long long>(kBlockSize), kCapacity);
  Cluster cluster(nodes, rails);
  cluster.Boot();
  const Phase first = cluster.Run(0);
  Print("first start, until all have blocks", first, nodes);
  cluster.PrintRecords();
  (void)cluster.Run(300'000);
  const Phase steady = cluster.Run(1'200'000);
  Print("steady state", steady, nodes);
  cluster.Boot();
  const Phase restart = cluster.Run(0);
  Print("all restarted, until all hand out", restart, nodes);
  (void)cluster.Run(300'000);
  cluster.LoseAll();
  const Phase lost = cluster.Run(120'000);
  Print("the store lost everything: two minutes", lost, nodes);
  std::printf("blocks missing after it: %zu\n", cluster.BlocksMissing());

  const double minutes = (steady.end_ms - steady.begin_ms) / 60'000;
  bool good = Bound("calls of a node per minute", static_cast<double>(steady.calls) / nodes / minutes, 1.5);
  good &= Bound("calls of a node per restart", static_cast<double>(restart.calls) / nodes, 4);
  good &=
      Bound("calls of a node at its first start", static_cast<double>(first.calls) / nodes, 8 + 10.0 * rails);
  good &= Bound("blocks missing after a loss", static_cast<double>(cluster.BlocksMissing()), 0);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? railhead::testing::NumberOf(argv[1]) : 10'000;
  const int rails = argc > 2 ? railhead::testing::NumberOf(argv[2]) : 8;
  if (nodes < 1 || rails < 1 || rails > 15) {
    (void)std::fprintf(stderr, "usage: lease_scale [NODES [RAILS]]\n");
    return 2;
  }
  return railhead::testing::Main(nodes, rails);
}
