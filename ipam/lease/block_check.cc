#include "ipam/lease/block_check.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace railhead::ipam {
namespace {

constexpr std::size_t kListedOwners = 4;

// The node's own blocks, in use or not: its right is older than any provisional allocation.
bool HasRight(BlockState state) {
  return state == BlockState::kUsable || state == BlockState::kOrphaned || state == BlockState::kLost;
}

std::string DescribeHeld(const std::vector<AddressRecord>& held) {
  if (held.empty()) return "none of its addresses is in use here";
  std::string text = std::to_string(held.size()) + " of its addresses are in use here: ";
  for (std::size_t i = 0; i < held.size() && i < kListedOwners; ++i) {
    if (i != 0) text += ", ";
    text += held[i].address.ToString() + " by container " + held[i].owner.container;
  }
  return held.size() > kListedOwners ? text + ", ..." : text;
}

}  // namespace

Result<bool> BlockCheck::Run() {
  if (round_ != context_.lease.instance) {
    done_.clear();
    layouts_done_ = false;
    round_ = context_.lease.instance;
  }
  if (!layouts_done_) RH_TRY(CheckLayouts());
  std::vector<NodeBlock> blocks;
  for (const auto& [name, block] : context_.blocks) blocks.push_back(block);
  for (const NodeBlock& block : blocks) {
    if (done_.contains(NameOf(block))) continue;
    if (context_.OutOfCalls()) return false;
    RH_TRY_WRAP(CheckOne(block), "checking " + Describe(KeyOf(block)));
    done_.insert(NameOf(block));
  }
  NodeLease lease = context_.lease;
  lease.checking = false;
  RH_TRY(context_.Save({lease, {}, {}}));
  round_.clear();
  return true;
}

Result<void> BlockCheck::CheckLayouts() {
  for (const PoolLayout& layout : context_.settings.pools) {
    const bool in_use = std::ranges::any_of(context_.blocks, [&](const auto& entry) {
      return entry.first.pool == layout.pool() && HasRight(entry.second.state);
    });
    if (in_use) RH_TRY(CheckLayout(layout, true));
  }
  layouts_done_ = true;
  return {};
}

Result<void> BlockCheck::CheckLayout(const PoolLayout& layout, bool insist) {
  const LeaseKey key = LeaseKey::Block(layout.pool(), kLayoutIndex);
  const auto entry = RH_TRY(context_.cluster.Get(key));
  if (!entry) {
    auto made = context_.cluster.Create(key, Encode(LayoutRecord{layout.size()}));
    if (made) return {};
    return Fail(std::move(made.error()));
  }
  const std::uint64_t size = RH_TRY(ParseLayout(*entry)).block_size;
  if (size == layout.size()) return {};
  if (insist) {
    RH_TRY(context_.cluster.Update(*entry, Encode(LayoutRecord{layout.size()})));
    return {};
  }
  return Fail(ErrorCode::kConflict,
              "subnet " + layout.pool() + " is divided into blocks of " + std::to_string(size) +
                  " addresses in the cluster store, and of " + std::to_string(layout.size()) + " here",
              "set the same blockSize on all nodes; to change it, return all blocks of the subnet first and "
              "remove its layout record");
}

Result<void> BlockCheck::CheckOne(const NodeBlock& block) {
  const auto entry = RH_TRY(context_.cluster.Get(KeyOf(block)));
  if (!entry) return RestoreMissing(block);
  const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
  if (record.node == context_.settings.node) return CheckOwn(block, *entry, record);
  return CheckForeign(block, *entry, record);
}

Result<void> BlockCheck::Keep(NodeBlock block, BlockState state) {
  block.instance = context_.lease.instance;
  return state == block.state ? context_.Put(block) : context_.SetState(block, state);
}

Result<void> BlockCheck::RestoreMissing(NodeBlock block) {
  // An allocation that failed or was not old enough: another block replaces it.
  if (!HasRight(block.state)) return context_.Erase(block);
  if (block.nonce.empty()) block.nonce = context_.Nonce();
  RH_TRY(context_.cluster.Create(KeyOf(block), Encode(context_.RecordOf(block, true))));
  context_.AddEvent(LeaseEvent::Kind::kReacquired, block, "the cluster store did not have it");
  return Keep(block, block.state == BlockState::kLost ? BlockState::kUsable : block.state);
}

Result<void> BlockCheck::CheckOwn(NodeBlock block, const LeaseEntry& entry, const BlockRecord& record) {
  const bool unconfirmed = block.state == BlockState::kAllocating || block.state == BlockState::kProvisional;
  if (unconfirmed && record.nonce != block.nonce) {
    // Of an allocation that this node does not know, or of an earlier one.
    block.nonce.clear();
    return Keep(block, BlockState::kReturning);
  }
  if (block.nonce.empty() && block.state != BlockState::kReturning) block.nonce = record.nonce;
  BlockRecord expected = context_.RecordOf(block, unconfirmed ? record.leased : true);
  if (block.state == BlockState::kReturning) expected.nonce = record.nonce;
  if (record != expected) RH_TRY(context_.cluster.Update(entry, Encode(expected)));
  return Keep(block, block.state == BlockState::kLost ? BlockState::kUsable : block.state);
}

Result<void> BlockCheck::CheckForeign(NodeBlock block, const LeaseEntry& entry, const BlockRecord& record) {
  if (!HasRight(block.state)) {
    if (block.state != BlockState::kReturning)
      context_.AddEvent(LeaseEvent::Kind::kAbandoned, block, "node " + record.node + " has it");
    return context_.Erase(block);
  }
  if (record.leased) return MarkLost(block, record);
  if (block.nonce.empty()) block.nonce = context_.Nonce();
  RH_TRY(context_.cluster.Update(entry, Encode(context_.RecordOf(block, true))));
  context_.AddEvent(LeaseEvent::Kind::kReacquired, block, "node " + record.node + " had it provisionally");
  return Keep(block, block.state == BlockState::kLost ? BlockState::kUsable : block.state);
}

Result<void> BlockCheck::MarkLost(const NodeBlock& block, const BlockRecord& record) {
  if (block.state == BlockState::kLost) return {};
  const auto held = RH_TRY(context_.lease_state.HeldIn(block));
  RH_TRY(context_.SetState(block, BlockState::kLost));
  context_.AddEvent(LeaseEvent::Kind::kLost, block,
                    "node " + record.node + " leases it; " + DescribeHeld(held));
  return {};
}

Result<void> BlockCheck::RecheckLost() {
  if (lost_checked_ == context_.lease.counter) return {};
  std::vector<NodeBlock> lost;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kLost && context_.LayoutOf(name.pool) != nullptr) lost.push_back(block);
  }
  for (const NodeBlock& block : lost) {
    if (context_.OutOfCalls()) return {};
    RH_TRY_WRAP(CheckOne(block), "checking " + Describe(KeyOf(block)));
  }
  lost_checked_ = context_.lease.counter;
  return {};
}

}  // namespace railhead::ipam
