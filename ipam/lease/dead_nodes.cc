#include "ipam/lease/dead_nodes.h"

#include <algorithm>
#include <utility>

namespace railhead {
namespace {

// A rack's worth of dead nodes in a row is worked off from its end, so few are enough.
constexpr std::size_t kNeighbours = 8;
constexpr std::uint64_t kLooksPerReclaim = 8;

}  // namespace

std::uint64_t DeadNodes::IntervalMs() const {
  const auto reclaim = static_cast<std::uint64_t>(context_.settings.times.reclaim.count());
  return std::max<std::uint64_t>(1, reclaim / kLooksPerReclaim);
}

std::optional<std::uint64_t> DeadNodes::next_ms() const {
  if (context_.settings.times.reclaim.count() == 0) return std::nullopt;
  return looked_ms_ ? *looked_ms_ + IntervalMs() : context_.now.boottime_ms;
}

Result<void> DeadNodes::Run() {
  if (context_.settings.times.reclaim.count() == 0) return {};
  if (taking_) RH_TRY_WRAP(Go(), "taking the blocks of node " + taking_->entry.key.node);
  if (looked_ms_ && context_.now.boottime_ms < *looked_ms_ + IntervalMs()) return {};
  if (context_.Spent()) return {};
  return WithContext(Look(), "looking for dead nodes");
}

Result<std::vector<LeaseEntry>> DeadNodes::Neighbours() {
  const std::string& me = context_.settings.node;
  auto nodes = RH_TRY(context_.cluster.Nodes(me, kNeighbours));
  if (nodes.size() < kNeighbours) {
    const auto first = RH_TRY(context_.cluster.Nodes("", kNeighbours - nodes.size()));
    nodes.insert(nodes.end(), first.begin(), first.end());
  }
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](const LeaseEntry& entry) { return entry.key.node == me; }),
              nodes.end());
  return nodes;
}

Result<void> DeadNodes::Look() {
  // Silence counts only as far as this node could have heard.
  const bool gap = looked_ms_ && context_.now.boottime_ms > *looked_ms_ + 2 * IntervalMs();
  if (gap || boot_id_ != context_.now.boot_id) seen_.clear();
  boot_id_ = context_.now.boot_id;
  looked_ms_ = context_.now.boottime_ms;
  auto nodes = Neighbours();
  if (!nodes) {
    seen_.clear();
    return Fail(std::move(nodes.error()));
  }
  std::map<std::string, Seen> seen;
  std::optional<LeaseEntry> dead;
  const auto reclaim_ms = static_cast<std::uint64_t>(context_.settings.times.reclaim.count());
  for (const LeaseEntry& entry : *nodes) {
    const auto before = seen_.find(entry.key.node);
    const bool same = before != seen_.end() && before->second.revision == entry.revision;
    const std::uint64_t since_ms = same ? before->second.since_ms : context_.now.boottime_ms;
    seen[entry.key.node] = {entry.revision, since_ms};
    if (!dead && context_.now.boottime_ms >= since_ms + reclaim_ms) dead = entry;
  }
  seen_ = std::move(seen);
  if (dead && !taking_) return Begin(*dead);
  return {};
}

Result<void> DeadNodes::Begin(const LeaseEntry& entry) {
  Taking taking;
  taking.record = RH_TRY(ParseNodeRecord(entry));
  taking.record.taken_by = context_.settings.node;
  auto marked = context_.cluster.Update(entry, Encode(taking.record));
  if (!marked) {
    if (marked.error().code == ErrorCode::kConflict) return {};  // it lives
    return Fail(std::move(marked.error()));
  }
  taking.entry = std::move(*marked);
  for (const auto& [pool, indexes] : taking.record.blocks) {
    for (const std::uint64_t index : indexes) taking.left.push_back({pool, index});
  }
  taking_ = std::move(taking);
  return Go();
}

Result<void> DeadNodes::Go() {
  const std::string node = taking_->entry.key.node;
  while (!taking_->left.empty()) {
    if (context_.Spent()) return {};
    RH_TRY(FreeOne(taking_->left.back()));
    taking_->left.pop_back();
  }
  auto removed = context_.cluster.Remove(taking_->entry);
  if (!removed && removed.error().code != ErrorCode::kConflict) return removed;
  context_.Tell(LeaseEvent::Kind::kReclaimed, "node " + node +
                                                  " has given no sign of life for reclaimSeconds: " +
                                                  std::to_string(taking_->freed) + " blocks of it are free");
  taking_.reset();
  return {};
}

Result<void> DeadNodes::FreeOne(const BlockName& name) {
  const auto entry = RH_TRY(context_.cluster.Get(LeaseKey::Block(name.pool, name.index)));
  if (!entry) return {};
  const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
  const NodeRecord& dead = taking_->record;
  if (record.node != taking_->entry.key.node ||
      (record.instance != dead.instance && record.instance != dead.previous))
    return {};
  auto removed = context_.cluster.Remove(*entry);
  if (!removed && removed.error().code != ErrorCode::kConflict) return removed;
  if (removed) ++taking_->freed;
  return {};
}

}  // namespace railhead
