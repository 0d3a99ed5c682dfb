#include "tests/support/lease/memory_store.h"

#include <utility>

namespace railhead::testing {
namespace {

Error Conflict(const ipam::LeaseKey& key) {
  return {ErrorCode::kConflict, "memory store: record of " + key.pool + key.node + " is another", "", 0};
}

ipam::LeaseEntry EntryOf(const MemoryCluster::Records::value_type& record) {
  return {record.first, record.second.text, std::to_string(record.second.revision)};
}

}  // namespace

bool MemoryCluster::IsAsSeen(const ipam::LeaseEntry& seen) const {
  const auto found = records_.find(seen.key);
  return found != records_.end() && std::to_string(found->second.revision) == seen.revision;
}

ipam::LeaseEntry MemoryCluster::Put(const ipam::LeaseKey& key, const std::string& value) {
  Value& record = records_[key];
  record = {value, ++revision_};
  return {key, value, std::to_string(record.revision)};
}

Result<std::optional<ipam::LeaseEntry>> MemoryCluster::Get(const ipam::LeaseKey& key) const {
  const auto found = records_.find(key);
  if (found == records_.end()) return std::nullopt;
  return EntryOf(*found);
}

Result<ipam::LeaseEntry> MemoryCluster::Create(const ipam::LeaseKey& key, const std::string& value) {
  if (records_.contains(key) && !two_creators) return Fail(Conflict(key));
  return Put(key, value);
}

Result<ipam::LeaseEntry> MemoryCluster::Update(const ipam::LeaseEntry& seen, const std::string& value) {
  if (!IsAsSeen(seen)) return Fail(Conflict(seen.key));
  return Put(seen.key, value);
}

Result<void> MemoryCluster::Remove(const ipam::LeaseEntry& seen) {
  if (!IsAsSeen(seen)) return Fail(Conflict(seen.key));
  records_.erase(seen.key);
  return {};
}

std::vector<ipam::LeaseEntry> MemoryCluster::Blocks(const std::string& pool, std::uint64_t from,
                                                    std::size_t limit) const {
  std::vector<ipam::LeaseEntry> found;
  if (two_creators) return found;
  for (auto at = records_.lower_bound(ipam::LeaseKey::Block(pool, from)); at != records_.end(); ++at) {
    const bool of_pool = at->first.kind == ipam::LeaseKey::Kind::kBlock && at->first.pool == pool;
    if (!of_pool || found.size() == limit) break;
    found.push_back(EntryOf(*at));
  }
  return found;
}

std::vector<ipam::LeaseEntry> MemoryCluster::Nodes(const std::string& after, std::size_t limit) const {
  std::vector<ipam::LeaseEntry> found;
  for (auto at = records_.upper_bound(ipam::LeaseKey::Node(after)); at != records_.end(); ++at) {
    if (at->first.kind != ipam::LeaseKey::Kind::kNode || found.size() == limit) break;
    found.push_back(EntryOf(*at));
  }
  return found;
}

template <typename T>
Result<T> MemoryStore::Ask(bool changes, const std::function<Result<T>()>& request) {
  ++calls_;
  const Fault now = fault();
  if (now == Fault::kUnavailable) return Fail(ErrorCode::kUnavailable, "memory store: cut off");
  if (now == Fault::kTimeoutBefore) return Fail(ErrorCode::kTimeout, "memory store: no answer");
  if (now == Fault::kDelayed) {
    if (changes) delayed_.push_back([request] { (void)request(); });
    return Fail(ErrorCode::kTimeout, "memory store: no answer yet");
  }
  Result<T> answer = request();
  if (changes && answer) changed();
  if (now == Fault::kTimeoutAfter) return Fail(ErrorCode::kTimeout, "memory store: answer lost");
  return answer;
}

void MemoryStore::DeliverDelayed() {
  for (const auto& request : std::exchange(delayed_, {})) request();
}

Result<std::optional<ipam::LeaseEntry>> MemoryStore::Get(const ipam::LeaseKey& key) {
  return Ask<std::optional<ipam::LeaseEntry>>(false, [&cluster = cluster_, key] { return cluster.Get(key); });
}

Result<ipam::LeaseEntry> MemoryStore::Create(const ipam::LeaseKey& key, const std::string& value) {
  return Ask<ipam::LeaseEntry>(true,
                               [&cluster = cluster_, key, value] { return cluster.Create(key, value); });
}

Result<ipam::LeaseEntry> MemoryStore::Update(const ipam::LeaseEntry& seen, const std::string& value) {
  return Ask<ipam::LeaseEntry>(true,
                               [&cluster = cluster_, seen, value] { return cluster.Update(seen, value); });
}

Result<void> MemoryStore::Remove(const ipam::LeaseEntry& seen) {
  return Ask<void>(true, [&cluster = cluster_, seen] { return cluster.Remove(seen); });
}

Result<std::vector<ipam::LeaseEntry>> MemoryStore::Blocks(const std::string& pool, std::uint64_t from,
                                                          std::size_t limit) {
  return Ask<std::vector<ipam::LeaseEntry>>(
      false, [&]() -> Result<std::vector<ipam::LeaseEntry>> { return cluster_.Blocks(pool, from, limit); });
}

Result<std::vector<ipam::LeaseEntry>> MemoryStore::Nodes(const std::string& after, std::size_t limit) {
  return Ask<std::vector<ipam::LeaseEntry>>(
      false, [&]() -> Result<std::vector<ipam::LeaseEntry>> { return cluster_.Nodes(after, limit); });
}

}  // namespace railhead::testing
