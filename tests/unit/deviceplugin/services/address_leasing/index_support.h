// Claims of indices in memory: the store of one node, which shares cluster and Node objects with the others,
// and nodes that claim there.
//
// Ownership: borrows the cluster. Threads: one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/address_leasing/index_claim.h"
#include "tests/support/lease/memory_store.h"

namespace railhead::testing {

struct IndexCluster {
  MemoryCluster records;
  std::map<std::string, address_leasing::ClusterNode> nodes;

  // Of all claims, by index.
  [[nodiscard]] std::map<int, std::string> Holders() const {
    std::map<int, std::string> holders;
    for (const auto& [key, value] : records.records()) {
      const auto record = address_leasing::ParseIndexRecord({key, value.text, {}});
      holders[static_cast<int>(key.index)] = record ? record->node : "?";
    }
    return holders;
  }
};

class MemoryIndexStore : public address_leasing::IndexStore {
 public:
  explicit MemoryIndexStore(IndexCluster& cluster) : cluster_(cluster), writes_(cluster.records) {}

  Result<std::optional<address_leasing::ClusterNode>> Node(const std::string& name) override {
    if (cut || (node_fails && node_fails(name))) return Fail(ErrorCode::kUnavailable, "cut off");
    const auto found = cluster_.nodes.find(name);
    if (found == cluster_.nodes.end()) return std::nullopt;
    return found->second;
  }

  Result<std::vector<ipam::LeaseEntry>> Claims(const std::optional<std::uint64_t>& after,
                                               std::size_t limit) override {
    if (cut) return Fail(ErrorCode::kUnavailable, "cut off");
    const std::string last = after ? NameOf(*after) : "";
    std::vector<std::pair<std::string, std::uint64_t>> names;
    for (const auto& [key, value] : cluster_.records.records()) {
      if (!is_seen(key.index)) continue;
      if (std::string name = NameOf(key.index); last < name) names.emplace_back(std::move(name), key.index);
    }
    const std::size_t size = std::min(limit, names.size());
    std::ranges::partial_sort(names, names.begin() + static_cast<std::ptrdiff_t>(size));
    std::vector<ipam::LeaseEntry> page;
    for (std::size_t i = 0; i < size; ++i)
      page.push_back(**cluster_.records.Get(ipam::LeaseKey::Index(names[i].second)));
    return page;
  }

  ipam::ClusterStore& records() override { return writes_; }

  MemoryStore& faults() { return writes_; }
  [[nodiscard]] int writes() const { return writes_.count; }

  bool cut = false;
  std::function<bool(const std::string& name)> node_fails;
  std::function<bool(std::uint64_t index)>& remove_fails = writes_.remove_fails;
  // Whether a list has the claim: one that was made before the list.
  std::function<bool(std::uint64_t index)> is_seen = [](std::uint64_t /*index*/) { return true; };

 private:
  // Counts also the writes that are refused.
  struct Writes : MemoryStore {
    using MemoryStore::MemoryStore;
    Result<ipam::LeaseEntry> Create(const ipam::LeaseKey& key, const std::string& value) override {
      ++count;
      return MemoryStore::Create(key, value);
    }
    Result<ipam::LeaseEntry> Update(const ipam::LeaseEntry& seen, const std::string& value) override {
      ++count;
      return MemoryStore::Update(seen, value);
    }
    Result<void> Remove(const ipam::LeaseEntry& seen) override {
      ++count;
      if (remove_fails && remove_fails(seen.key.index))
        return Fail(ErrorCode::kUnavailable, "finalizers that are not ours keep it");
      return MemoryStore::Remove(seen);
    }
    int count = 0;
    std::function<bool(std::uint64_t index)> remove_fails;
  };

  static std::string NameOf(std::uint64_t index) { return "node-" + std::to_string(index); }

  IndexCluster& cluster_;
  Writes writes_;
};

constexpr std::uint64_t kHourMs = 3'600'000;

inline bool HasEvent(const address_leasing::IndexClaim::Outcome& outcome,
                     address_leasing::IndexEvent::Kind kind) {
  return std::ranges::any_of(outcome.events,
                             [&](const address_leasing::IndexEvent& event) { return event.kind == kind; });
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
    claim_ = std::make_unique<address_leasing::IndexClaim>(
        address_leasing::IndexSettings{.node = name_, .machine = "machine-" + name_, .reclaim = reclaim},
        *store_,
        address_leasing::IndexFile{[this]() -> Result<std::optional<NodeIndex>> { return disk; },
                                   [this](const NodeIndex& index) -> Result<void> {
                                     disk = index;
                                     return {};
                                   },
                                   [this] { return Held(); }},
        [this] { return random_(); });
  }

  address_leasing::IndexClaim::Outcome Step() {
    now_ms = std::max(now_ms, claim_->next_ms());
    return claim_->Step(
        {boot, now_ms, wall_lead_s + static_cast<std::int64_t>(1'800'000'000 + now_ms / 1000)}, needs);
  }
  // All steps of that time.
  address_leasing::IndexClaim::Outcome Pass(std::uint64_t ms) {
    address_leasing::IndexClaim::Outcome all;
    const std::uint64_t end = now_ms + ms;
    while (std::max(now_ms, claim_->next_ms()) < end) {
      address_leasing::IndexClaim::Outcome one = Step();
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
  std::chrono::milliseconds reclaim = ipam::LeaseTimes{}.reclaim;
  address_leasing::IndexNeeds needs{std::nullopt, [](int index) { return index < 8; }};

 private:
  [[nodiscard]] Result<address_leasing::HeldAddresses> Held() const {
    if (unreadable) return Fail(ErrorCode::kIo, "the address store is damaged");
    address_leasing::HeldAddresses held;
    held.now_ms = now_ms;
    if (!held_ms.empty()) held.oldest_ms = *std::ranges::min_element(held_ms);
    return held;
  }

  IndexCluster& cluster_;
  const std::string name_;
  std::mt19937_64 random_{7};
  std::unique_ptr<MemoryIndexStore> store_;
  std::unique_ptr<address_leasing::IndexClaim> claim_;
};

class IndexClaimTest : public ::testing::Test {
 protected:
  // As another program.
  void WriteText(int index, const std::string& text) {
    ASSERT_TRUE(cluster_.records.Create(ipam::LeaseKey::Index(static_cast<std::uint64_t>(index)), text));
  }
  // Writes the claim as another program.
  void Write(int index, const address_leasing::IndexRecord& record) {
    const auto key = ipam::LeaseKey::Index(static_cast<std::uint64_t>(index));
    const auto entry = cluster_.records.Get(key);
    if (*entry) {
      ASSERT_TRUE(cluster_.records.Update(**entry, address_leasing::Encode(record)));
    } else {
      ASSERT_TRUE(cluster_.records.Create(key, address_leasing::Encode(record)));
    }
  }
  void Remove(int index) {
    const auto entry = cluster_.records.Get(ipam::LeaseKey::Index(static_cast<std::uint64_t>(index)));
    ASSERT_TRUE(*entry);
    ASSERT_TRUE(cluster_.records.Remove(**entry));
  }
  [[nodiscard]] address_leasing::IndexRecord RecordOf(int index) const {
    const auto entry = cluster_.records.Get(ipam::LeaseKey::Index(static_cast<std::uint64_t>(index)));
    return *entry ? address_leasing::ParseIndexRecord(**entry).value_or(address_leasing::IndexRecord{})
                  : address_leasing::IndexRecord{};
  }

  IndexCluster cluster_;
  TestNode a_{cluster_, "a"};
  TestNode b_{cluster_, "b"};
};

}  // namespace railhead::testing
