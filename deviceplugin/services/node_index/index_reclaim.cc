#include "deviceplugin/services/node_index/index_reclaim.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace railhead::node_index {
namespace {

// Living nodes that a check has to pass.
constexpr std::size_t kNeighbors = 8;
constexpr std::uint64_t kChecksPerReclaim = 8;
// Of removals, in one check: a store that fails is not asked for each claim.
constexpr std::size_t kMostFailures = 8;
// Removals in one check: the next one has the others.
constexpr std::size_t kMostDue = IndexStore::kMostClaims;

}  // namespace

std::uint64_t IndexReclaim::CheckMs() const {
  const auto period = settings_.reclaim.count() == 0 ? kDefaultReclaim : settings_.reclaim;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(period.count()) / kChecksPerReclaim);
}

Result<void> IndexReclaim::Run(const ipam::ClockReading& now, std::uint64_t own,
                               std::vector<IndexEvent>* events) {
  if (boot_ != now.boot_id) {
    gone_.clear();
    checked_ms_.reset();
  }
  boot_ = now.boot_id;
  now_ms_ = now.boottime_ms;
  if (checked_ms_ && now_ms_ < *checked_ms_ + CheckMs()) return {};
  auto checked = WithContext(Check(own, events), "reclaiming indices of removed nodes");
  problem_ = checked ? "" : checked.error().message;
  return checked;
}

std::vector<std::string> IndexReclaim::Unreadable() const {
  std::vector<std::string> sentences;
  for (const auto& [index, sentence] : unreadable_) sentences.push_back(sentence);
  return sentences;
}

std::vector<std::string> IndexReclaim::Crowded() const {
  std::vector<std::string> sentences;
  for (const auto& [node, claims] : crowded_)
    sentences.push_back("node " + node + " has claimed at least " + std::to_string(claims) + " indices");
  return sentences;
}

Result<void> IndexReclaim::Check(std::uint64_t own, std::vector<IndexEvent>* events) {
  auto before = std::exchange(unreadable_, {});
  passed_.clear();
  auto walked = Walk(own);
  if (!walked) {
    unreadable_.merge(before);
    return Fail(std::move(walked.error()));
  }
  checked_ms_ = now_ms_;
  AddUnreadable(before, events);
  AddCrowded(events);
  std::erase_if(gone_, [&](const auto& one) { return one.second.seen_ms != now_ms_; });
  Result<void> result;
  std::size_t failures = 0;
  for (const DueClaim& claim : *walked) {
    auto freed = Free(claim, events);
    if (freed) continue;
    if (result) result = std::move(freed);
    if (++failures == kMostFailures) break;
  }
  return result;
}

void IndexReclaim::AddUnreadable(const std::map<std::uint64_t, std::string>& before,
                                 std::vector<IndexEvent>* events) {
  for (const auto& [index, sentence] : unreadable_) {
    if (before.contains(index)) continue;
    events->push_back({IndexEvent::Kind::kUnreadable, static_cast<int>(index), sentence});
  }
}

void IndexReclaim::AddCrowded(std::vector<IndexEvent>* events) {
  const auto before = std::exchange(crowded_, {});
  for (const auto& [name, node] : std::exchange(passed_, {})) {
    if (node.claims <= kMostClaimsOfNode) continue;
    crowded_.emplace(name, node.claims);
    if (!before.contains(name)) {
      events->push_back({IndexEvent::Kind::kCrowded, static_cast<int>(node.first),
                         name + " has at least " + std::to_string(node.claims) + " claims"});
    }
  }
}

Result<std::vector<IndexReclaim::DueClaim>> IndexReclaim::Walk(std::uint64_t own) {
  std::vector<DueClaim> due;
  std::set<std::uint64_t> passed = {own};
  std::size_t living = 0;
  std::optional<std::uint64_t> after = own;
  bool is_around = false;
  for (std::size_t limit = kNeighbors;; limit = std::min(2 * limit, IndexStore::kMostClaims)) {
    const auto page = RH_TRY(store_.Claims(after, limit));
    for (const ClaimEntry& entry : page) {
      if (!passed.insert(entry.index).second) return due;
      if (RH_TRY(Examine(entry, &due)) && ++living == kNeighbors) return due;
    }
    if (page.size() == limit) {
      after = page.back().index;
    } else if (std::exchange(is_around, true)) {
      return due;
    } else {
      after.reset();
    }
  }
}

Result<bool> IndexReclaim::Examine(const ClaimEntry& entry, std::vector<DueClaim>* due) {
  auto record = ParseIndexRecord(entry);
  if (!record) {
    unreadable_[entry.index] = record.error().message;
    return false;
  }
  if (record->node == settings_.node) return false;
  auto passed = passed_.find(record->node);
  if (passed == passed_.end()) {
    PassedNode first;
    first.node = RH_TRY(store_.Node(record->node));
    first.first = entry.index;
    passed = passed_.emplace(record->node, std::move(first)).first;
  }
  const bool is_first = ++passed->second.claims == 1;
  const auto& node = passed->second.node;
  if (node && node->uid == record->uid) return is_first;
  if (settings_.reclaim.count() != 0 && IsDue(entry, *record) && due->size() < kMostDue)
    due->push_back({entry, *std::move(record)});
  return false;
}

bool IndexReclaim::IsDue(const ClaimEntry& entry, const IndexRecord& record) {
  Observation& gone = gone_[entry.index];
  const bool same = gone.revision == entry.revision && now_ms_ <= gone.seen_ms + 2 * CheckMs();
  gone = {entry.revision, same ? gone.since_ms : now_ms_, now_ms_};
  return record.reclaimed_by == settings_.node ||
         now_ms_ >= gone.since_ms + static_cast<std::uint64_t>(settings_.reclaim.count());
}

Result<void> IndexReclaim::Free(const DueClaim& claim, std::vector<IndexEvent>* events) {
  IndexRecord record = claim.record;
  record.reclaimed_by = settings_.node;
  const auto marked = store_.Update(claim.entry, Encode(record));
  auto removed = marked ? store_.Remove(*marked) : Result<void>(Fail(marked.error()));
  if (removed) {
    events->push_back({IndexEvent::Kind::kFreed, static_cast<int>(claim.entry.index),
                       "node " + record.node + " was gone for reclaimSeconds"});
  }
  // A conflict: its node is back, or another node has removed the claim.
  if (removed || removed.error().code == ErrorCode::kConflict) return {};
  return removed;
}

}  // namespace railhead::node_index
