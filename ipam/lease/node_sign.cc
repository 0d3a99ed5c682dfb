#include "ipam/lease/node_sign.h"

#include <algorithm>
#include <utility>

#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

constexpr int kQuietRenewals = 2;
constexpr int kAttempts = 3;

bool Names(const std::map<std::string, std::vector<std::uint64_t>>& lists, const BlockName& name) {
  const auto list = lists.find(name.pool);
  return list != lists.end() && Contains(list->second, name.index);
}

}  // namespace

Result<void> NodeSign::Begin() {
  auto state = RH_TRY(context_.book.Read());
  context_.lease = state.lease.value_or(NodeLease{});
  context_.blocks.clear();
  for (NodeBlock& block : state.blocks) context_.blocks[NameOf(block)] = std::move(block);
  if (begun_) return {};
  RH_TRY(Identify());
  // One session that was never seen in the record is enough: a daemon that is started again and
  // again must not forget the one that was.
  NodeLease& lease = context_.lease;
  if (lease.session.empty() || lease.session == lease.known_session) lease.session = context_.Nonce();
  RH_TRY(context_.Save({lease, {}, {}}));
  begun_ = true;
  return {};
}

// A book of another node or machine is a copy: its blocks are in use elsewhere.
Result<void> NodeSign::Identify() {
  NodeLease& lease = context_.lease;
  const std::string& machine = context_.settings.machine;
  const bool renamed = lease.node != context_.settings.node;
  // Where the machine cannot be told, the boot is: nothing is used before the record was read.
  const bool moved = !machine.empty() && !lease.machine.empty() && lease.machine != machine;
  if (!renamed && !moved) {
    if (!machine.empty()) lease.machine = machine;
    return {};
  }
  BookChange change;
  for (auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kLost) continue;
    block.state = renamed ? BlockState::kLost : BlockState::kFormer;
    block.boot_id = context_.now.boot_id;
    block.since_ms = context_.now.boottime_ms;
    change.put.push_back(block);
  }
  if (!change.put.empty()) {
    context_.Tell(LeaseEvent::Kind::kStranger, "the store on this disk is of node '" + lease.node +
                                                   "' on another machine or under another name");
  }
  if (renamed) lease = NodeLease{};
  lease.node = context_.settings.node;
  lease.machine = machine;
  lease.boot_id.clear();
  context_.NewInstance();
  change.lease = lease;
  return context_.Save(change);
}

bool NodeSign::Due() const {
  return !looked_ || context_.now.boottime_ms >= next_ms_ || context_.lease.boot_id != context_.now.boot_id ||
         context_.lease.StoodStillMs(context_.now) != 0;
}

bool NodeSign::Lists(const NodeBlock& block) const {
  return looked_ && Names(listed_, NameOf(block));
}

bool NodeSign::WrittenByUs(const NodeRecord& record) const {
  const NodeLease& lease = context_.lease;
  return record.instance == lease.instance &&
         (record.session == lease.session || record.session == lease.known_session);
}

Result<void> NodeSign::Look() {
  seen_ = RH_TRY(context_.cluster.Get(LeaseKey::Node(context_.settings.node)));
  const bool changed_by_others = std::exchange(changed_by_others_, false);
  if (!seen_) {
    // Or somebody has taken our blocks, who then leaves alone what a newer instance has.
    if (context_.lease.counter != 0) {
      context_.NewInstance();
      RH_TRY(Restored({}, "the node's record is gone"));
    }
  } else {
    const NodeRecord record = RH_TRY(ParseNodeRecord(*seen_));
    const bool as_before = record.counter == context_.lease.counter;
    RH_TRY(Judge(record));
    if (changed_by_others && as_before && !context_.lease.checking)
      RH_TRY(Restored(record, "the node's record was replaced by an equal one"));
  }
  looked_ = true;
  return {};
}

Result<void> NodeSign::Judge(const NodeRecord& record) {
  NodeLease& lease = context_.lease;
  if (record.counter > lease.counter + 1)
    return Stranger(record, "the node's record is newer than this node's store");
  if (record.counter < lease.counter) return Restored(record, "the node's record is of an earlier time");
  if (!WrittenByUs(record)) return Stranger(record, "the node's record was written by another instance");
  if (record.counter > lease.counter) {
    lease.counter = record.counter;
    lease.known_session = record.session;
    RH_TRY(context_.Save({lease, {}, {}}));
  }
  if (record.taken_by.empty()) return {};
  context_.Tell(LeaseEvent::Kind::kWasTaken, record.taken_by + " has begun to take this node's blocks");
  // Whoever takes them leaves alone what a newer instance has.
  context_.NewInstance();
  return context_.Save({lease, {}, {}});
}

// What the record lists and the book does not have was given back, or claimed without success.
Result<void> NodeSign::Restored(const NodeRecord& record, const std::string& why) {
  BookChange change;
  for (const auto& [pool, indexes] : record.blocks) {
    const PoolLayout* layout = context_.LayoutOf(pool);
    for (const std::uint64_t index : indexes) {
      if (layout == nullptr || context_.blocks.contains({pool, index})) continue;
      change.put.push_back({pool, index, layout->Block(index), BlockState::kReturning, record.instance, "",
                            context_.now.boot_id, context_.now.boottime_ms, 0});
    }
  }
  context_.lease.checking = true;
  change.lease = context_.lease;
  context_.Tell(LeaseEvent::Kind::kRestored, why);
  return context_.Save(change);
}

Result<void> NodeSign::Stranger(const NodeRecord& record, const std::string& why) {
  NodeLease& lease = context_.lease;
  const bool first_ever = lease.counter == 0;
  // After a reboot of this very machine no pod is left that a lost store would have known of.
  const bool same_machine = !record.machine.empty() && record.machine == lease.machine;
  const std::string boot_id = same_machine ? record.boot : context_.now.boot_id;
  BookChange change;
  std::map<BlockName, NodeBlock> former;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state != BlockState::kLost) former[name] = block;
  }
  for (const auto& [pool, indexes] : record.blocks) {
    const PoolLayout* layout = context_.LayoutOf(pool);
    for (const std::uint64_t index : indexes) {
      if (layout == nullptr) continue;
      NodeBlock& block = former[{pool, index}];
      block.pool = pool;
      block.index = index;
      block.range = layout->Block(index);
    }
  }
  for (auto& [name, block] : former) {
    block.state = BlockState::kFormer;
    block.nonce.clear();
    block.boot_id = boot_id;
    block.since_ms = context_.now.boottime_ms;
    change.put.push_back(block);
  }
  lease.counter = std::max(lease.counter, record.counter);
  lease.boot_id.clear();
  context_.NewInstance();
  lease.session = context_.Nonce();
  lease.known_session = lease.session;
  change.lease = lease;
  disturbed_ = kQuietRenewals;
  context_.Tell(LeaseEvent::Kind::kStranger, first_ever ? "this node's earlier store is gone" : why);
  return context_.Save(change);
}

NodeRecord NodeSign::Wanted() const {
  const NodeLease& lease = context_.lease;
  NodeRecord record{.instance = lease.instance,
                    .previous = lease.previous,
                    .session = lease.session,
                    .machine = lease.machine,
                    .boot = context_.now.boot_id,
                    .counter = lease.counter + 1};
  for (const auto& [name, block] : context_.blocks) {
    if (block.state != BlockState::kLost) record.blocks[name.pool].push_back(name.index);
  }
  return record;
}

// false: the record is not as it was seen.
Result<bool> NodeSign::Write() {
  const NodeRecord record = Wanted();
  const LeaseKey key = LeaseKey::Node(context_.settings.node);
  auto written =
      seen_ ? context_.cluster.Update(*seen_, Encode(record)) : context_.cluster.Create(key, Encode(record));
  if (!written) {
    looked_ = false;
    if (written.error().code != ErrorCode::kConflict) return Fail(std::move(written.error()));
    changed_by_others_ = seen_.has_value();
    return false;
  }
  seen_ = std::move(*written);
  listed_ = record.blocks;
  NodeLease lease = context_.lease;
  lease.counter = record.counter;
  lease.known_session = lease.session;
  if (!lease.checking) {
    lease.boot_id = context_.now.boot_id;
    lease.renewed_ms = context_.now.boottime_ms;
    lease.fence_ms = static_cast<std::uint64_t>(context_.settings.times.fence.count());
    lease.renewed_wall_seconds = context_.now.wall_seconds;
    lease.reclaim_ms = static_cast<std::uint64_t>(context_.settings.times.reclaim.count());
  }
  RH_TRY(context_.Save({lease, {}, {}}));
  if (lease.checking) return true;
  told_still_ = false;
  disturbed_ = std::max(0, disturbed_ - 1);
  // Give or take, so that nodes that were started together do not stay together.
  const auto renew_ms = static_cast<std::uint64_t>(context_.settings.times.renew.count());
  next_ms_ = context_.now.boottime_ms + renew_ms * 7 / 10 + context_.random() % (renew_ms * 3 / 10 + 1);
  return true;
}

Result<void> NodeSign::Renew() {
  const std::uint64_t still_ms = context_.lease.StoodStillMs(context_.now);
  if (still_ms != 0 && !std::exchange(told_still_, true)) {
    context_.Tell(
        LeaseEvent::Kind::kStoodStill,
        std::to_string(still_ms / 1000) + " s; blocks are asked for before anything is given of them");
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (!looked_) RH_TRY_WRAP(Look(), "reading this node's record");
    if (RH_TRY_WRAP(Write(), "renewing this node's lease")) return {};
  }
  return Fail(
      ErrorCode::kBusy,
      "renewing this node's lease: the record of node '" + context_.settings.node + "' keeps changing",
      "see whether two machines or two railheadd use this node's name");
}

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

}  // namespace railhead::ipam
