#include "deviceplugin/services/node_status/disruption_budget.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

namespace railhead::node_status {
namespace {

// No rail's subnet: the kernel takes none of its addresses.
constexpr const char* kPool = "0.0.0.0/32";
constexpr std::size_t kPageSize = 500;
// Other nodes change the records at the same time.
constexpr int kTries = 4;
// Nodes that wait for a place ask every half minute: how many there are changes seldom.
constexpr int kAcquiresPerCount = 60;
// Of those that may be gone; the next Acquire() checks others.
constexpr int kHoldersAsked = 8;

std::string NodeOf(const ipam::LeaseEntry& entry) {
  const auto record = nlohmann::json::parse(entry.value, nullptr, false);
  return record.is_object() && record.contains("node") && record["node"].is_string()
             ? record["node"].get<std::string>()
             : std::string();
}

}  // namespace

std::uint64_t MaxUnavailable::Of(std::uint64_t all) const {
  if (nodes > 0) return static_cast<std::uint64_t>(nodes);
  return std::max<std::uint64_t>(all * static_cast<std::uint64_t>(percent) / 100, 1);
}

struct DisruptionBudget::Places {
  std::vector<ipam::LeaseEntry> all;
  std::vector<ipam::LeaseEntry> own;
};

Result<DisruptionBudget::Places> DisruptionBudget::ReadPlaces() {
  Places places;
  for (std::uint64_t from = 0;;) {
    const auto page = RH_TRY(store_.Blocks(kPool, from, kPageSize));
    for (const ipam::LeaseEntry& entry : page) {
      places.all.push_back(entry);
      if (NodeOf(entry) == node_) places.own.push_back(entry);
    }
    if (page.size() < kPageSize) return places;
    from = page.back().key.index + 1;
  }
}

Result<std::uint64_t> DisruptionBudget::CountNodes() {
  if (counted_ && acquires_until_count_-- > 0) return *counted_;
  std::uint64_t count = 0;
  for (std::string after;;) {
    const auto page = RH_TRY(store_.Nodes(after, kPageSize));
    count += page.size();
    if (page.size() < kPageSize) break;
    after = page.back().key.node;
  }
  acquires_until_count_ = kAcquiresPerCount;
  counted_ = count;
  return count;
}

Result<bool> DisruptionBudget::Acquire(const MaxUnavailable& limit, std::uint64_t nodes) {
  const std::uint64_t most = limit.Of(nodes != 0 || limit.nodes > 0 ? nodes : RH_TRY(CountNodes()));
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Places places = RH_TRY(ReadPlaces());
    usage_ = Usage{places.all.size(), most};
    if (!places.own.empty()) {
      if (RH_TRY(Keep(places))) return true;
      continue;
    }
    if (places.all.size() >= most) {
      if (!RH_TRY(FreeOne(places))) return false;
      continue;
    }
    std::set<std::uint64_t> taken;
    for (const ipam::LeaseEntry& entry : places.all) taken.insert(entry.key.index);
    std::vector<std::uint64_t> free;
    for (std::uint64_t index = 0; index < most; ++index) {
      if (!taken.contains(index)) free.push_back(index);
    }
    // A random one, so that nodes that ask at the same time seldom collide.
    const ipam::LeaseKey key = ipam::LeaseKey::Block(kPool, free[pick_(free.size())]);
    const auto created = store_.Create(key, nlohmann::json{{"node", node_}}.dump());
    if (created) {
      ++usage_->used;
      kept_ = true;
      return true;
    }
    if (created.error().code != ErrorCode::kConflict) return Fail(created.error());
  }
  return false;
}

Result<bool> DisruptionBudget::Keep(const Places& places) {
  if (!kept_) {
    const auto renewed = store_.Update(places.own.front(), places.own.front().value);
    if (!renewed && renewed.error().code == ErrorCode::kConflict) return false;
    if (!renewed) return Fail(renewed.error());
    kept_ = true;
  }
  // A request that was given up has made more than one.
  for (std::size_t i = 1; i < places.own.size(); ++i) (void)store_.Remove(places.own[i]);
  return true;
}

Result<bool> DisruptionBudget::FreeOne(const Places& places) {
  const std::uint64_t first = pick_(places.all.size());
  for (std::size_t i = 0; i < places.all.size() && i < kHoldersAsked; ++i) {
    const ipam::LeaseEntry& entry = places.all[(first + i) % places.all.size()];
    const std::string holder = NodeOf(entry);
    if (!holder.empty() && RH_TRY(store_.Get(ipam::LeaseKey::Node(holder)))) continue;
    const auto removed = store_.Remove(entry);
    if (removed || removed.error().code == ErrorCode::kConflict) return true;
    return Fail(removed.error());
  }
  return false;
}

Result<void> DisruptionBudget::Release() {
  kept_ = false;
  const Places places = RH_TRY(ReadPlaces());
  std::uint64_t used = places.all.size();
  for (const ipam::LeaseEntry& entry : places.own) {
    auto removed = store_.Remove(entry);
    if (!removed && removed.error().code != ErrorCode::kConflict) return removed;
    --used;
  }
  if (usage_) usage_->used = used;
  return {};
}

}  // namespace railhead::node_status
