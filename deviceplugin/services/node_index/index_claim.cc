#include "deviceplugin/services/node_index/index_claim.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "netns/base/text.h"

namespace railhead::node_index {
namespace {

using std::chrono::milliseconds;

// After a conflict. The highest index of n nodes is at most n + 46.
constexpr std::size_t kCandidates = 48;
// By the number of conflicts. With up to a second from a list to the claim, 1,250 nodes need at most five
// writes each.
constexpr std::array<std::uint64_t, 4> kConflictWaitsMs = {60'000, 180'000, 540'000, 1'620'000};
// After a failed step.
constexpr std::uint64_t kFirstPauseMs = 5'000;
constexpr int kMostPauses = 7;
constexpr milliseconds kConfirm = std::chrono::minutes(10);
constexpr int kConfirmsPerFence = 16;
// An ADD that has read the former index is over.
constexpr std::uint64_t kLongestAddMs = 600'000;

bool IsConflict(const Error& error) {
  return error.code == ErrorCode::kConflict;
}

}  // namespace

std::uint64_t IndexClaim::ConfirmMs() const {
  const milliseconds interval =
      std::clamp<milliseconds>(settings_.fence / kConfirmsPerFence, std::chrono::seconds(1), kConfirm);
  return static_cast<std::uint64_t>(interval.count());
}

void IndexClaim::AddEvent(IndexEvent::Kind kind, int index, std::string detail) {
  outcome_.events.push_back({kind, index, std::move(detail)});
}

IndexClaim::Outcome IndexClaim::Step(const ipam::ClockReading& now, const IndexNeeds& needs) {
  now_ = now;
  outcome_ = {};
  // With jitter, so that nodes that started together do not stay in step.
  next_ms_ = now_.boottime_ms + ConfirmMs() * 7 / 10 + Below(ConfirmMs() * 3 / 10 + 1);
  if (auto done = Work(needs); !done) {
    const std::uint64_t pause = std::min(ConfirmMs(), kFirstPauseMs << std::min(failures_++, kMostPauses));
    next_ms_ = now_.boottime_ms + pause / 2 + Below(pause / 2 + 1);
    outcome_.problem = std::move(done.error());
  } else {
    failures_ = 0;
  }
  return std::move(outcome_);
}

Result<void> IndexClaim::Work(const IndexNeeds& needs) {
  RH_TRY(ReadNode());
  RH_TRY(ReadOwn(needs));
  const bool create = own_ ? false : RH_TRY_WRAP(Choose(needs), "claiming an index");
  RH_TRY_WRAP(Confirm(create), "claiming index " + std::to_string(own_->index));
  if (!own_ && needs.listed) {
    // Pods may still have addresses of a former index.
    RH_TRY(KeepFormer());
    return Fail(ErrorCode::kConflict,
                "`nodes` gives this node index " + std::to_string(*needs.listed) +
                    ", which another node has claimed: both may give pods the same addresses",
                "kubectl get nodeindices names that node; give this one another index in `nodes`");
  }
  if (!own_) return {};
  RH_TRY(ReleaseFormer(needs));
  return Reclaim();
}

Result<void> IndexClaim::ReadNode() {
  const auto node = RH_TRY(store_.Node(settings_.node));
  if (!node) {
    return Fail(ErrorCode::kNotFound, "the cluster has no node " + settings_.node,
                "/etc/railhead/node-name has to be the node's name in Kubernetes");
  }
  if (!node->machine.empty() && !settings_.machine.empty() &&
      ToLower(node->machine) != ToLower(settings_.machine)) {
    return Fail(ErrorCode::kConflict,
                "node " + settings_.node + " of the cluster is another machine: kubelet there reports " +
                    node->machine + ", this one is " + settings_.machine,
                "check that only one machine uses this node's name, and that its kubelet runs");
  }
  uid_ = node->uid;
  return {};
}

Result<void> IndexClaim::ReadOwn(const IndexNeeds& needs) {
  if (!loaded_) {
    auto read = file_.read();
    // A damaged file: the list of claims says which index this node has.
    if (!read && read.error().code != ErrorCode::kMalformed && read.error().code != ErrorCode::kInvalid)
      return Fail(std::move(read.error()));
    if (read) own_ = std::move(*read);
    loaded_ = true;
  }
  if (!own_) return {};
  const bool is_listed = needs.listed == own_->index;
  if (own_->node == settings_.node && (is_listed || (!needs.listed && needs.fits(own_->index)))) return {};
  if (own_->node == settings_.node && !needs.listed)
    AddEvent(IndexEvent::Kind::kUnfit, own_->index, "not every rail of fabric.json has addresses for it");
  GiveUp();
  return {};
}

void IndexClaim::GiveUp() {
  own_.reset();
  listed_ = false;
}

Result<IndexClaim::Taken> IndexClaim::List() {
  Taken taken;
  std::vector<ClaimEntry> own;
  for (std::optional<std::uint64_t> after;;) {
    const auto page = RH_TRY(store_.Claims(after, IndexStore::kMostClaims));
    for (const ClaimEntry& entry : page) {
      taken.indices.insert(entry.index);
      const auto record = ParseIndexRecord(entry);
      if (!record) continue;
      ++taken.holders[record->node];
      if (record->node == settings_.node) own.push_back(entry);
    }
    if (page.size() < IndexStore::kMostClaims) break;
    after = page.back().index;
  }
  former_ = std::move(own);
  former_use_.reset();
  listed_ = true;
  return taken;
}

Result<bool> IndexClaim::Choose(const IndexNeeds& needs) {
  const Taken taken = RH_TRY(List());
  // The best of several: one of this very Node object, the lowest.
  const auto rank = [&](const ClaimEntry& entry) {
    return std::tuple(ParseIndexRecord(entry).value_or(IndexRecord{}).uid != uid_, entry.index);
  };
  std::vector<ClaimEntry> fitting;
  std::ranges::copy_if(former_, std::back_inserter(fitting), [&](const ClaimEntry& entry) {
    return entry.index <= kLastIndex && needs.fits(static_cast<int>(entry.index));
  });
  const auto best = std::ranges::min_element(fitting, {}, rank);
  NodeIndex chosen{.node = settings_.node};
  if (needs.listed) {
    chosen.index = *needs.listed;
  } else if (best != fitting.end()) {
    chosen.index = static_cast<int>(best->index);
  } else {
    // Before it can fail: without an index of its own, the node still keeps its former ones.
    RH_TRY(KeepFormer());
    chosen.index = RH_TRY(PickFree(taken, needs));
  }
  RH_TRY(Save(std::move(chosen)));
  return !taken.indices.contains(static_cast<std::uint64_t>(own_->index));
}

Result<int> IndexClaim::PickFree(const Taken& taken, const IndexNeeds& needs) {
  const std::size_t candidates = conflicts_ == 0 ? 1 : kCandidates;
  std::vector<int> free;
  for (std::uint64_t at = 0; at <= kLastIndex && free.size() < candidates; ++at) {
    const int index = static_cast<int>(at);
    if (!taken.indices.contains(at) && needs.fits(index)) free.push_back(index);
  }
  if (!free.empty()) return free[Below(free.size())];
  const auto most =
      std::ranges::max_element(taken.holders, {}, [](const auto& holder) { return holder.second; });
  const bool is_crowded = most != taken.holders.end() && most->second > kMostClaimsOfNode;
  return Fail(
      ErrorCode::kExhausted,
      "all indices are taken: " + std::to_string(taken.indices.size()) + " are claimed" +
          (is_crowded ? ", " + std::to_string(most->second) + " of them by node " + most->first : "") +
          ", and no other one has addresses on each rail",
      "give the rails larger subnets, or a longer nodeBlock or nodeSubnet; kubectl get nodeindices lists the "
      "claims");
}

// The claim as it is now.
Result<ClaimEntry> IndexClaim::ReadOrCreate(bool create) {
  const auto index = static_cast<std::uint64_t>(own_->index);
  auto entry = create ? std::nullopt : RH_TRY(store_.Get(index));
  if (entry) return *std::move(entry);
  auto created = store_.Create(index, Encode({settings_.node, uid_, {}}));
  if (created || !IsConflict(created.error())) return created;
  entry = RH_TRY(store_.Get(index));
  if (entry) return *std::move(entry);
  return Fail(ErrorCode::kBusy, "another node has just removed the claim", "it is tried again");
}

Result<void> IndexClaim::Confirm(bool create) {
  const ClaimEntry entry = RH_TRY(ReadOrCreate(create));
  const IndexRecord wanted{settings_.node, uid_, {}};
  const auto record = ParseIndexRecord(entry);
  if (!record || record->node != settings_.node) return Contradict(record ? record->node : "");
  if (*record != wanted) {
    RH_TRY(store_.Update(entry, Encode(wanted)));
    if (record->uid != uid_) AddEvent(IndexEvent::Kind::kTakenOver, own_->index);
  }
  const bool is_new = !own_->claimed;
  RH_TRY(Save({.node = settings_.node,
               .index = own_->index,
               .claimed = true,
               .boot = now_.boot_id,
               .boottime_ms = now_.boottime_ms,
               .wall = std::chrono::system_clock::from_time_t(now_.wall_seconds),
               .fence = std::chrono::ceil<std::chrono::seconds>(settings_.fence)}));
  conflicts_ = 0;
  if (is_new) AddEvent(IndexEvent::Kind::kClaimed, own_->index);
  return {};
}

// The index is no longer used when this returns.
Result<void> IndexClaim::Contradict(const std::string& holder) {
  const std::string why =
      holder.empty() ? "another program has written its claim" : "node " + holder + " has it";
  if (own_->claimed) {
    NodeIndex lost = *own_;
    lost.claimed = false;
    RH_TRY(Save(std::move(lost)));
    AddEvent(IndexEvent::Kind::kLost, own_->index, why);
    next_ms_ = now_.boottime_ms;
  } else {
    AddEvent(IndexEvent::Kind::kConflict, own_->index, why);
    next_ms_ = now_.boottime_ms + Below(kConflictWaitsMs.at(conflicts_));
    conflicts_ = std::min(conflicts_ + 1, kConflictWaitsMs.size() - 1);
  }
  GiveUp();
  return {};
}

Result<void> IndexClaim::ReleaseFormer(const IndexNeeds& needs) {
  if (!listed_) RH_TRY(List());
  std::erase_if(former_, [&](const ClaimEntry& entry) {
    return entry.index == static_cast<std::uint64_t>(own_->index);
  });
  if (former_.empty()) return {};
  RH_TRY(KeepFormer());
  const auto is_kept = [&](const ClaimEntry& entry) {
    return entry.index <= kLastIndex && needs.kept.contains(static_cast<int>(entry.index));
  };
  if (std::ranges::any_of(former_, is_kept)) {
    former_use_.reset();
    return {};
  }
  RH_TRY_WRAP(WatchFormerUse(), "checking whether pods still use a former index of this node");
  const auto delay_ms = static_cast<std::uint64_t>(needs.reuse_delay.count());
  if (!former_use_->idle_ms || now_.boottime_ms < *former_use_->idle_ms + delay_ms) return {};
  return RemoveFormer();
}

// A claim under an earlier uid of this Node, or with a mark, is one that other nodes remove.
Result<void> IndexClaim::KeepFormer() {
  const IndexRecord wanted{settings_.node, uid_, {}};
  for (ClaimEntry& entry : former_) {
    if (ParseIndexRecord(entry).value_or(IndexRecord{}) == wanted) continue;
    auto kept = store_.Update(entry, Encode(wanted));
    if (!kept) {
      listed_ = false;
      return Fail(std::move(kept.error()));
    }
    entry = *std::move(kept);
  }
  return {};
}

Result<void> IndexClaim::WatchFormerUse() {
  const HeldAddresses held = RH_TRY(file_.held());
  if (!former_use_) former_use_ = FormerUse{.begun_ms = now_.boottime_ms};
  FormerUse& use = *former_use_;
  const bool adding = now_.boottime_ms < use.begun_ms + kLongestAddMs;
  if (adding) use.store_ms = held.now_ms;
  if (adding || (held.oldest_ms && *held.oldest_ms <= use.store_ms)) {
    use.idle_ms.reset();
  } else if (!use.idle_ms) {
    use.idle_ms = now_.boottime_ms;
  }
  return {};
}

Result<void> IndexClaim::RemoveFormer() {
  for (; !former_.empty(); former_.pop_back()) {
    auto removed = store_.Remove(former_.back());
    if (!removed) {
      listed_ = false;
      if (!IsConflict(removed.error())) return removed;
      continue;
    }
    AddEvent(IndexEvent::Kind::kReleased, static_cast<int>(former_.back().index));
  }
  return {};
}

Result<void> IndexClaim::Reclaim() {
  auto checked = reclaim_.Run(now_, static_cast<std::uint64_t>(own_->index), &outcome_.events);
  if (own_->unreadable != reclaim_.Unreadable() || own_->crowded != reclaim_.Crowded() ||
      own_->reclaim_problem != reclaim_.problem())
    RH_TRY(Save(*own_));
  return checked;
}

Result<void> IndexClaim::Save(NodeIndex index) {
  index.unreadable = reclaim_.Unreadable();
  index.crowded = reclaim_.Crowded();
  index.reclaim_problem = reclaim_.problem();
  RH_TRY(file_.write(index));
  own_ = std::move(index);
  return {};
}

}  // namespace railhead::node_index
