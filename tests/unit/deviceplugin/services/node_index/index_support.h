// Nodes that claim indices in memory.
//
// Ownership: borrows the cluster. Threads: one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/node_index/index_claim.h"
#include "tests/unit/deviceplugin/services/node_index/memory_index_store.h"

namespace railhead::testing {

constexpr std::uint64_t kHourMs = 3'600'000;

inline bool HasEvent(const node_index::IndexClaim::Outcome& outcome, node_index::IndexEvent::Kind kind) {
  return std::ranges::any_of(outcome.events,
                             [&](const node_index::IndexEvent& event) { return event.kind == kind; });
}

// A node that claims an index, with a disk and a clock.
class TestNode {
 public:
  TestNode(IndexCluster& cluster, std::string name) : cluster_(cluster), name_(std::move(name)) {
    cluster_.nodes[name_] = {"uid-of-" + name_, "MACHINE-" + name_};
    Restart();
  }

  // Only the disk stays.
  void Restart() {
    store_ = std::make_unique<MemoryIndexStore>(cluster_);
    claim_ = std::make_unique<node_index::IndexClaim>(
        node_index::IndexSettings{.node = name_, .machine = "machine-" + name_, .reclaim = reclaim}, *store_,
        node_index::IndexFile{[this]() -> Result<std::optional<NodeIndex>> { return disk; },
                              [this](const NodeIndex& index) -> Result<void> {
                                disk = index;
                                return {};
                              },
                              [this] { return Held(); }},
        [this] { return random_(); });
  }

  node_index::IndexClaim::Outcome Step() {
    now_ms = std::max(now_ms, claim_->next_ms());
    return claim_->Step(
        {boot, now_ms, wall_lead_s + static_cast<std::int64_t>(1'800'000'000 + now_ms / 1000)}, needs);
  }
  // All steps of that time.
  node_index::IndexClaim::Outcome Pass(std::uint64_t ms) {
    node_index::IndexClaim::Outcome all;
    const std::uint64_t end = now_ms + ms;
    while (std::max(now_ms, claim_->next_ms()) < end) {
      node_index::IndexClaim::Outcome one = Step();
      all.events.insert(all.events.end(), one.events.begin(), one.events.end());
      all.problem = std::move(one.problem);
    }
    now_ms = end;
    return all;
  }
  [[nodiscard]] std::optional<int> Index() const {
    return disk && disk->claimed ? std::optional<int>(disk->index) : std::nullopt;
  }
  MemoryIndexStore& store() { return *store_; }
  // An address for a pod.
  void Hold() { held_ms.push_back(now_ms); }

  std::uint64_t now_ms = 1000;
  std::string boot = "boot";
  std::optional<NodeIndex> disk;
  std::vector<std::uint64_t> held_ms;  // since when, by address
  bool unreadable = false;             // the address store
  std::int64_t wall_lead_s = 0;
  std::chrono::milliseconds reclaim = node_index::kDefaultReclaim;
  node_index::IndexNeeds needs{std::nullopt, [](int index) { return index < 8; }};

 private:
  [[nodiscard]] Result<node_index::HeldAddresses> Held() const {
    if (unreadable) return Fail(ErrorCode::kIo, "the address store is damaged");
    node_index::HeldAddresses held;
    held.now_ms = now_ms;
    if (!held_ms.empty()) held.oldest_ms = *std::ranges::min_element(held_ms);
    return held;
  }

  IndexCluster& cluster_;
  const std::string name_;
  std::mt19937_64 random_{7};
  std::unique_ptr<MemoryIndexStore> store_;
  std::unique_ptr<node_index::IndexClaim> claim_;
};

class IndexClaimTest : public ::testing::Test {
 protected:
  // As another program.
  void WriteText(std::uint64_t index, const std::string& text) {
    ASSERT_TRUE(cluster_.claims.Create(index, text));
  }
  // Writes the claim as another program.
  void Write(std::uint64_t index, const node_index::IndexRecord& record) {
    const auto entry = cluster_.claims.Get(index);
    if (entry) {
      ASSERT_TRUE(cluster_.claims.Update(*entry, node_index::Encode(record)));
    } else {
      ASSERT_TRUE(cluster_.claims.Create(index, node_index::Encode(record)));
    }
  }
  void Remove(std::uint64_t index) {
    const auto entry = cluster_.claims.Get(index);
    ASSERT_TRUE(entry);
    ASSERT_TRUE(cluster_.claims.Remove(*entry));
  }
  [[nodiscard]] node_index::IndexRecord RecordOf(std::uint64_t index) const {
    const auto entry = cluster_.claims.Get(index);
    return entry ? node_index::ParseIndexRecord(*entry).value_or(node_index::IndexRecord{})
                 : node_index::IndexRecord{};
  }

  IndexCluster cluster_;
  TestNode a_{cluster_, "a"};
  TestNode b_{cluster_, "b"};
};

}  // namespace railhead::testing
