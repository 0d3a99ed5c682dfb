#include "ipam/lease/node_heartbeat.h"

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

Result<void> NodeHeartbeat::Load() {
  auto state = RH_TRY(context_.lease_state.Read());
  context_.lease = state.lease.value_or(NodeLease{});
  context_.blocks.clear();
  for (NodeBlock& block : state.blocks) context_.blocks[NameOf(block)] = std::move(block);
  if (loaded_) return {};
  RH_TRY(Identify());
  // Keep a session that was never seen in the record. A daemon that restarts repeatedly must still recognize
  // the one that was seen.
  NodeLease& lease = context_.lease;
  if (lease.session.empty() || lease.session == lease.known_session) lease.session = context_.Nonce();
  RH_TRY(context_.Save({lease, {}, {}}));
  loaded_ = true;
  return {};
}

// The state of another node or machine is a copy: its blocks are in use elsewhere.
Result<void> NodeHeartbeat::Identify() {
  NodeLease& lease = context_.lease;
  const std::string& machine = context_.settings.machine;
  const bool renamed = lease.node != context_.settings.node;
  // Without a machine ID the boot decides: no block is used before the record was read.
  const bool moved = !machine.empty() && !lease.machine.empty() && lease.machine != machine;
  if (!renamed && !moved) {
    if (!machine.empty()) lease.machine = machine;
    return {};
  }
  LeaseStateChange change;
  for (auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kLost) continue;
    block.state = renamed ? BlockState::kLost : BlockState::kOrphaned;
    block.boot_id = context_.now.boot_id;
    block.since_ms = context_.now.boottime_ms;
    change.put.push_back(block);
  }
  if (!change.put.empty()) {
    context_.AddEvent(LeaseEvent::Kind::kUnknownWriter, "the store on this disk belongs to node '" +
                                                            lease.node +
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

bool NodeHeartbeat::IsDue() const {
  return !record_known_ || context_.now.boottime_ms >= next_ms_ ||
         context_.lease.boot_id != context_.now.boot_id || context_.lease.PausedMs(context_.now) != 0;
}

bool NodeHeartbeat::IsListed(const NodeBlock& block) const {
  return record_known_ && Names(listed_, NameOf(block));
}

bool NodeHeartbeat::WrittenByUs(const NodeRecord& record) const {
  const NodeLease& lease = context_.lease;
  return record.instance == lease.instance &&
         (record.session == lease.session || record.session == lease.known_session);
}

Result<void> NodeHeartbeat::ReadRecord() {
  record_ = RH_TRY(context_.cluster.Get(LeaseKey::Node(context_.settings.node)));
  const bool changed_by_others = std::exchange(changed_by_others_, false);
  if (!record_) {
    // Or another node reclaimed our blocks; it spares those of a newer instance.
    if (context_.lease.counter != 0) {
      context_.NewInstance();
      RH_TRY(HandleRestore({}, "the node's record is gone"));
    }
  } else {
    const NodeRecord record = RH_TRY(ParseNodeRecord(*record_));
    const bool as_before = record.counter == context_.lease.counter;
    RH_TRY(CompareRecord(record));
    if (changed_by_others && as_before && !context_.lease.checking)
      RH_TRY(HandleRestore(record, "the node's record was replaced by an equal one"));
  }
  record_known_ = true;
  return {};
}

Result<void> NodeHeartbeat::CompareRecord(const NodeRecord& record) {
  NodeLease& lease = context_.lease;
  if (record.counter > lease.counter + 1)
    return HandleUnknownWriter(record, "the node's record is newer than this node's store");
  if (record.counter < lease.counter) return HandleRestore(record, "the node's record is of an earlier time");
  if (!WrittenByUs(record))
    return HandleUnknownWriter(record, "the node's record was written by another instance");
  if (record.counter > lease.counter) {
    lease.counter = record.counter;
    lease.known_session = record.session;
    RH_TRY(context_.Save({lease, {}, {}}));
  }
  if (record.reclaimed_by.empty()) return {};
  context_.AddEvent(LeaseEvent::Kind::kReclaimedByOthers,
                    record.reclaimed_by + " has begun to reclaim this node's blocks");
  // The other node spares the blocks of a newer instance.
  context_.NewInstance();
  return context_.Save({lease, {}, {}});
}

// Blocks that only the record lists were returned, or their allocation failed.
Result<void> NodeHeartbeat::HandleRestore(const NodeRecord& record, const std::string& why) {
  LeaseStateChange change;
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
  context_.AddEvent(LeaseEvent::Kind::kRestored, why);
  return context_.Save(change);
}

Result<void> NodeHeartbeat::HandleUnknownWriter(const NodeRecord& record, const std::string& why) {
  NodeLease& lease = context_.lease;
  const bool first_ever = lease.counter == 0;
  // After a reboot of the same machine, no pod of the lost store is left.
  const bool same_machine = !record.machine.empty() && record.machine == lease.machine;
  const std::string boot_id = same_machine ? record.boot : context_.now.boot_id;
  LeaseStateChange change;
  std::map<BlockName, NodeBlock> orphaned;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state != BlockState::kLost) orphaned[name] = block;
  }
  for (const auto& [pool, indexes] : record.blocks) {
    const PoolLayout* layout = context_.LayoutOf(pool);
    for (const std::uint64_t index : indexes) {
      if (layout == nullptr) continue;
      NodeBlock& block = orphaned[{pool, index}];
      block.pool = pool;
      block.index = index;
      block.range = layout->Block(index);
    }
  }
  for (auto& [name, block] : orphaned) {
    block.state = BlockState::kOrphaned;
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
  renewals_to_wait_ = kQuietRenewals;
  context_.AddEvent(LeaseEvent::Kind::kUnknownWriter, first_ever ? "this node's earlier store is gone" : why);
  return context_.Save(change);
}

NodeRecord NodeHeartbeat::NextRecord() const {
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

// false: the record has changed since it was read.
Result<bool> NodeHeartbeat::WriteRecord() {
  const NodeRecord record = NextRecord();
  const LeaseKey key = LeaseKey::Node(context_.settings.node);
  auto written = record_ ? context_.cluster.Update(*record_, Encode(record))
                         : context_.cluster.Create(key, Encode(record));
  if (!written) {
    record_known_ = false;
    if (written.error().code != ErrorCode::kConflict) return Fail(std::move(written.error()));
    changed_by_others_ = record_.has_value();
    return false;
  }
  record_ = std::move(*written);
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
  pause_reported_ = false;
  renewals_to_wait_ = std::max(0, renewals_to_wait_ - 1);
  // With jitter, so that nodes that started together do not stay in step.
  const auto renew_ms = static_cast<std::uint64_t>(context_.settings.times.renew.count());
  next_ms_ = context_.now.boottime_ms + renew_ms * 7 / 10 + context_.random() % (renew_ms * 3 / 10 + 1);
  return true;
}

Result<void> NodeHeartbeat::Renew() {
  const std::uint64_t paused_ms = context_.lease.PausedMs(context_.now);
  if (paused_ms != 0 && !std::exchange(pause_reported_, true)) {
    context_.AddEvent(LeaseEvent::Kind::kMachinePaused,
                      std::to_string(paused_ms / 1000) +
                          " s; no address is allocated before the cluster store has answered");
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (!record_known_) RH_TRY_WRAP(ReadRecord(), "reading this node's record");
    if (RH_TRY_WRAP(WriteRecord(), "renewing this node's lease")) return {};
  }
  return Fail(
      ErrorCode::kBusy,
      "renewing this node's lease: the record of node '" + context_.settings.node + "' keeps changing",
      "check that only one machine and one railheadd use this node's name");
}

namespace {

// A row of dead nodes is reclaimed from its end, so few neighbors are enough.
constexpr std::size_t kNeighbors = 8;
constexpr std::uint64_t kChecksPerReclaim = 8;

}  // namespace

std::uint64_t DeadNodes::IntervalMs() const {
  const auto reclaim = static_cast<std::uint64_t>(context_.settings.times.reclaim.count());
  return std::max<std::uint64_t>(1, reclaim / kChecksPerReclaim);
}

std::optional<std::uint64_t> DeadNodes::next_ms() const {
  if (context_.settings.times.reclaim.count() == 0) return std::nullopt;
  return checked_ms_ ? *checked_ms_ + IntervalMs() : context_.now.boottime_ms;
}

Result<void> DeadNodes::Run() {
  if (context_.settings.times.reclaim.count() == 0) return {};
  if (reclaim_) RH_TRY_WRAP(ContinueReclaim(), "reclaiming the blocks of node " + reclaim_->entry.key.node);
  if (checked_ms_ && context_.now.boottime_ms < *checked_ms_ + IntervalMs()) return {};
  if (context_.OutOfCalls()) return {};
  return WithContext(CheckNeighbors(), "looking for dead nodes");
}

Result<std::vector<LeaseEntry>> DeadNodes::Neighbors() {
  const std::string& me = context_.settings.node;
  auto nodes = RH_TRY(context_.cluster.Nodes(me, kNeighbors));
  if (nodes.size() < kNeighbors) {
    const auto first = RH_TRY(context_.cluster.Nodes("", kNeighbors - nodes.size()));
    nodes.insert(nodes.end(), first.begin(), first.end());
  }
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](const LeaseEntry& entry) { return entry.key.node == me; }),
              nodes.end());
  return nodes;
}

Result<void> DeadNodes::CheckNeighbors() {
  // Silence counts only while this node could read the records.
  const bool gap = checked_ms_ && context_.now.boottime_ms > *checked_ms_ + 2 * IntervalMs();
  if (gap || boot_id_ != context_.now.boot_id) observed_.clear();
  boot_id_ = context_.now.boot_id;
  checked_ms_ = context_.now.boottime_ms;
  auto nodes = Neighbors();
  if (!nodes) {
    observed_.clear();
    return Fail(std::move(nodes.error()));
  }
  std::map<std::string, Observation> observed;
  std::optional<LeaseEntry> dead;
  const auto reclaim_ms = static_cast<std::uint64_t>(context_.settings.times.reclaim.count());
  for (const LeaseEntry& entry : *nodes) {
    const auto before = observed_.find(entry.key.node);
    const bool same = before != observed_.end() && before->second.revision == entry.revision;
    const std::uint64_t since_ms = same ? before->second.since_ms : context_.now.boottime_ms;
    observed[entry.key.node] = {entry.revision, since_ms};
    if (!dead && context_.now.boottime_ms >= since_ms + reclaim_ms) dead = entry;
  }
  observed_ = std::move(observed);
  if (dead && !reclaim_) return StartReclaim(*dead);
  return {};
}

Result<void> DeadNodes::StartReclaim(const LeaseEntry& entry) {
  Reclaim reclaim;
  reclaim.record = RH_TRY(ParseNodeRecord(entry));
  reclaim.record.reclaimed_by = context_.settings.node;
  auto marked = context_.cluster.Update(entry, Encode(reclaim.record));
  if (!marked) {
    if (marked.error().code == ErrorCode::kConflict) return {};  // it is alive
    return Fail(std::move(marked.error()));
  }
  reclaim.entry = std::move(*marked);
  for (const auto& [pool, indexes] : reclaim.record.blocks) {
    for (const std::uint64_t index : indexes) reclaim.left.push_back({pool, index});
  }
  reclaim_ = std::move(reclaim);
  return ContinueReclaim();
}

Result<void> DeadNodes::ContinueReclaim() {
  const std::string node = reclaim_->entry.key.node;
  while (!reclaim_->left.empty()) {
    if (context_.OutOfCalls()) return {};
    RH_TRY(FreeOne(reclaim_->left.back()));
    reclaim_->left.pop_back();
  }
  auto removed = context_.cluster.Remove(reclaim_->entry);
  if (!removed && removed.error().code != ErrorCode::kConflict) return removed;
  context_.AddEvent(LeaseEvent::Kind::kDeadNodeReclaimed,
                    "node " + node + " sent no heartbeat for reclaimSeconds: " +
                        std::to_string(reclaim_->freed) + " of its blocks are free");
  reclaim_.reset();
  return {};
}

Result<void> DeadNodes::FreeOne(const BlockName& name) {
  const auto entry = RH_TRY(context_.cluster.Get(LeaseKey::Block(name.pool, name.index)));
  if (!entry) return {};
  const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
  const NodeRecord& dead = reclaim_->record;
  if (record.node != reclaim_->entry.key.node ||
      (record.instance != dead.instance && record.instance != dead.previous))
    return {};
  auto removed = context_.cluster.Remove(*entry);
  if (!removed && removed.error().code != ErrorCode::kConflict) return removed;
  if (removed) ++reclaim_->freed;
  return {};
}

}  // namespace railhead::ipam
