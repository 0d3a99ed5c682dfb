// Claims of indices in memory, and one node's connection to them, which can lose requests.
//
// IndexCluster is what the cluster has: claims, linearizable, and Node objects. MemoryIndexStore is a node's
// view: it can be cut off or slow, or lose an answer with or without making the change.
// Ownership: a MemoryIndexStore borrows its cluster. Threads: one.
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

#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/services/node_index/kube_index_store.h"
#include "netns/base/result.h"

namespace railhead::testing {

class MemoryClaims {
 public:
  struct Value {
    std::string text;
    std::uint64_t revision = 0;
  };
  using Records = std::map<std::uint64_t, Value>;  // by index

  [[nodiscard]] std::optional<node_index::ClaimEntry> Get(std::uint64_t index) const {
    const auto found = records_.find(index);
    if (found == records_.end()) return std::nullopt;
    return node_index::ClaimEntry{index, found->second.text, std::to_string(found->second.revision)};
  }
  Result<node_index::ClaimEntry> Create(std::uint64_t index, const std::string& value) {
    if (records_.contains(index)) return Fail(Conflict(index));
    return Put(index, value);
  }
  Result<node_index::ClaimEntry> Update(const node_index::ClaimEntry& seen, const std::string& value) {
    if (!IsAsSeen(seen)) return Fail(Conflict(seen.index));
    return Put(seen.index, value);
  }
  Result<void> Remove(const node_index::ClaimEntry& seen) {
    if (!IsAsSeen(seen)) return Fail(Conflict(seen.index));
    records_.erase(seen.index);
    return {};
  }
  void Clear() { records_.clear(); }
  [[nodiscard]] const Records& records() const { return records_; }

 private:
  static Error Conflict(std::uint64_t index) {
    return {ErrorCode::kConflict, "memory store: claim " + std::to_string(index) + " is another", "", 0};
  }
  [[nodiscard]] bool IsAsSeen(const node_index::ClaimEntry& seen) const {
    const auto found = records_.find(seen.index);
    return found != records_.end() && std::to_string(found->second.revision) == seen.revision;
  }
  node_index::ClaimEntry Put(std::uint64_t index, const std::string& value) {
    Value& record = records_[index];
    record = {value, ++revision_};
    return {index, value, std::to_string(record.revision)};
  }

  Records records_;
  std::uint64_t revision_ = 0;
};

struct IndexCluster {
  MemoryClaims claims;
  std::map<std::string, node_index::ClusterNode> nodes;

  // Of all claims, by index.
  [[nodiscard]] std::map<int, std::string> Holders() const {
    std::map<int, std::string> holders;
    for (const auto& [index, value] : claims.records()) {
      const auto record = node_index::ParseIndexRecord({index, value.text, {}});
      holders[static_cast<int>(index)] = record ? record->node : "?";
    }
    return holders;
  }
};

class MemoryIndexStore : public node_index::IndexStore {
 public:
  enum class Fault : std::uint8_t {
    kNone,
    kUnavailable,    // the store did not get the request
    kTimeoutBefore,  // the request was lost
    kTimeoutAfter,   // the answer was lost
    kDelayed,        // the request arrives later: see DeliverDelayed()
  };

  explicit MemoryIndexStore(IndexCluster& cluster) : cluster_(cluster) {}

  Result<std::optional<node_index::ClusterNode>> Node(const std::string& name) override {
    if (cut || (node_fails && node_fails(name))) return Fail(ErrorCode::kUnavailable, "cut off");
    const auto found = cluster_.nodes.find(name);
    if (found == cluster_.nodes.end()) return std::nullopt;
    return found->second;
  }

  Result<std::vector<node_index::ClaimEntry>> Claims(const std::optional<std::uint64_t>& after,
                                                     std::size_t limit) override {
    if (cut) return Fail(ErrorCode::kUnavailable, "cut off");
    const std::string last = after ? node_index::KubeNameOf(*after) : "";
    std::vector<std::pair<std::string, std::uint64_t>> names;
    for (const auto& [index, value] : cluster_.claims.records()) {
      if (!is_seen(index)) continue;
      if (std::string name = node_index::KubeNameOf(index); last < name)
        names.emplace_back(std::move(name), index);
    }
    const std::size_t size = std::min(limit, names.size());
    std::ranges::partial_sort(names, names.begin() + static_cast<std::ptrdiff_t>(size));
    std::vector<node_index::ClaimEntry> page;
    for (std::size_t i = 0; i < size; ++i) page.push_back(*cluster_.claims.Get(names[i].second));
    return page;
  }

  Result<std::optional<node_index::ClaimEntry>> Get(std::uint64_t index) override {
    return Ask<std::optional<node_index::ClaimEntry>>(
        false, [&cluster = cluster_, index] { return cluster.claims.Get(index); });
  }
  Result<node_index::ClaimEntry> Create(std::uint64_t index, const std::string& value) override {
    ++writes_;
    return Ask<node_index::ClaimEntry>(
        true, [&cluster = cluster_, index, value] { return cluster.claims.Create(index, value); });
  }
  Result<node_index::ClaimEntry> Update(const node_index::ClaimEntry& seen,
                                        const std::string& value) override {
    ++writes_;
    return Ask<node_index::ClaimEntry>(
        true, [&cluster = cluster_, seen, value] { return cluster.claims.Update(seen, value); });
  }
  Result<void> Remove(const node_index::ClaimEntry& seen) override {
    ++writes_;
    if (remove_fails && remove_fails(seen.index))
      return Fail(ErrorCode::kUnavailable, "finalizers that are not ours keep it");
    return Ask<void>(true, [&cluster = cluster_, seen] { return cluster.claims.Remove(seen); });
  }

  // Those that are refused count, too.
  [[nodiscard]] int writes() const { return writes_; }
  void DeliverDelayed() {
    for (const auto& request : std::exchange(delayed_, {})) request();
  }

  bool cut = false;
  // Called before each request for one claim; decides whether it fails.
  std::function<Fault()> fault = [] { return Fault::kNone; };
  std::function<bool(const std::string& name)> node_fails;
  std::function<bool(std::uint64_t index)> remove_fails;
  // Whether a list has the claim: one that was made before the list.
  std::function<bool(std::uint64_t index)> is_seen = [](std::uint64_t /*index*/) { return true; };

 private:
  template <typename T>
  Result<T> Ask(bool changes, const std::function<Result<T>()>& request) {
    const Fault now = fault();
    if (now == Fault::kUnavailable) return Fail(ErrorCode::kUnavailable, "memory store: cut off");
    if (now == Fault::kTimeoutBefore) return Fail(ErrorCode::kTimeout, "memory store: no answer");
    if (now == Fault::kDelayed) {
      if (changes) delayed_.push_back([request] { (void)request(); });
      return Fail(ErrorCode::kTimeout, "memory store: no answer yet");
    }
    Result<T> answer = request();
    if (now == Fault::kTimeoutAfter) return Fail(ErrorCode::kTimeout, "memory store: answer lost");
    return answer;
  }

  IndexCluster& cluster_;
  int writes_ = 0;
  std::vector<std::function<void()>> delayed_;
};

}  // namespace railhead::testing
