// A cluster store in memory, and one node's connection to it, which can lose requests.
//
// MemoryCluster is the store: linearizable, with copies for a later restore. MemoryStore is a node's view: it
// can be cut off or slow, or lose an answer with or without making the change.
// Ownership: a MemoryStore borrows its cluster. Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ipam/lease/cluster_store.h"

namespace railhead::testing {

class MemoryCluster {
 public:
  struct Value {
    std::string text;
    std::uint64_t revision = 0;
  };
  using Records = std::map<ipam::LeaseKey, Value>;

  [[nodiscard]] Result<std::optional<ipam::LeaseEntry>> Get(const ipam::LeaseKey& key) const;
  Result<ipam::LeaseEntry> Create(const ipam::LeaseKey& key, const std::string& value);
  Result<ipam::LeaseEntry> Update(const ipam::LeaseEntry& seen, const std::string& value);
  Result<void> Remove(const ipam::LeaseEntry& seen);
  [[nodiscard]] std::vector<ipam::LeaseEntry> Blocks(const std::string& pool, std::uint64_t from,
                                                     std::size_t limit) const;
  [[nodiscard]] std::vector<ipam::LeaseEntry> Nodes(const std::string& after, std::size_t limit) const;

  [[nodiscard]] const Records& records() const { return records_; }
  void Restore(Records earlier) { records_ = std::move(earlier); }

  // A broken store: it lists no blocks, and confirms a block's creation to a second creator.
  bool two_creators = false;

 private:
  [[nodiscard]] bool IsAsSeen(const ipam::LeaseEntry& seen) const;
  ipam::LeaseEntry Put(const ipam::LeaseKey& key, const std::string& value);

  Records records_;
  std::uint64_t revision_ = 0;
};

class MemoryStore : public ipam::ClusterStore {
 public:
  enum class Fault : std::uint8_t {
    kNone,
    kUnavailable,    // the store did not get the request
    kTimeoutBefore,  // the request was lost
    kTimeoutAfter,   // the answer was lost
    kDelayed,        // the request arrives later: see DeliverDelayed()
  };

  explicit MemoryStore(MemoryCluster& cluster) : cluster_(cluster) {}

  Result<std::optional<ipam::LeaseEntry>> Get(const ipam::LeaseKey& key) override;
  Result<ipam::LeaseEntry> Create(const ipam::LeaseKey& key, const std::string& value) override;
  Result<ipam::LeaseEntry> Update(const ipam::LeaseEntry& seen, const std::string& value) override;
  Result<void> Remove(const ipam::LeaseEntry& seen) override;
  Result<std::vector<ipam::LeaseEntry>> Blocks(const std::string& pool, std::uint64_t from,
                                               std::size_t limit) override;
  Result<std::vector<ipam::LeaseEntry>> Nodes(const std::string& after, std::size_t limit) override;
  [[nodiscard]] std::uint64_t calls() const override { return calls_; }

  // Called before each request; decides whether it fails.
  std::function<Fault()> fault = [] { return Fault::kNone; };
  // Called after each change, before the answer.
  std::function<void()> changed = [] {};
  void DeliverDelayed();

 private:
  template <typename T>
  Result<T> Ask(bool changes, const std::function<Result<T>()>& request);

  MemoryCluster& cluster_;
  std::uint64_t calls_ = 0;
  std::vector<std::function<void()>> delayed_;
};

}  // namespace railhead::testing
