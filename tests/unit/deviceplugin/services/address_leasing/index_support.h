// Claims of indices in memory: the store of one node, which shares cluster and Node objects with the others.
//
// Ownership: borrows the cluster. Threads: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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
    if (cut) return Fail(ErrorCode::kUnavailable, "cut off");
    const auto found = cluster_.nodes.find(name);
    if (found == cluster_.nodes.end()) return std::nullopt;
    return found->second;
  }

  Result<std::vector<ipam::LeaseEntry>> Claims(const std::optional<std::uint64_t>& after,
                                               std::size_t limit) override {
    if (cut) return Fail(ErrorCode::kUnavailable, "cut off");
    std::vector<std::pair<std::string, ipam::LeaseKey>> names;
    for (const auto& [key, value] : cluster_.records.records()) {
      if (is_seen(key.index) && (!after || NameOf(*after) < NameOf(key.index)))
        names.emplace_back(NameOf(key.index), key);
    }
    std::ranges::sort(names);
    std::vector<ipam::LeaseEntry> page;
    for (std::size_t i = 0; i < std::min(limit, names.size()); ++i)
      page.push_back(**cluster_.records.Get(names[i].second));
    return page;
  }

  ipam::ClusterStore& records() override { return writes_; }

  MemoryStore& faults() { return writes_; }
  [[nodiscard]] int writes() const { return writes_.count; }

  bool cut = false;
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
      return MemoryStore::Remove(seen);
    }
    int count = 0;
  };

  static std::string NameOf(std::uint64_t index) { return "node-" + std::to_string(index); }

  IndexCluster& cluster_;
  Writes writes_;
};

}  // namespace railhead::testing
