#include "ipam/lease/block_check.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace railhead::ipam {
namespace {

constexpr std::size_t kShownOwners = 4;

// The node's own blocks, in use or not: its right is older than any claim on probation.
bool HasRight(BlockState state) {
  return state == BlockState::kUsable || state == BlockState::kFormer || state == BlockState::kLost;
}

std::string Shown(const std::vector<AddressRecord>& held) {
  if (held.empty()) return "nothing of it is in use here";
  std::string text = std::to_string(held.size()) + " of its addresses are in use here: ";
  for (std::size_t i = 0; i < held.size() && i < kShownOwners; ++i) {
    if (i != 0) text += ", ";
    text += held[i].address.ToString() + " by container " + held[i].owner.container;
  }
  return held.size() > kShownOwners ? text + ", ..." : text;
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
    if (context_.Spent()) return false;
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
              "give all nodes the same blockSize; to change it, return all blocks of the subnet first and "
              "remove its layout record");
}

Result<void> BlockCheck::CheckOne(const NodeBlock& block) {
  const auto entry = RH_TRY(context_.cluster.Get(KeyOf(block)));
  if (!entry) return Missing(block);
  const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
  if (record.node == context_.settings.node) return Ours(block, *entry, record);
  return Others(block, *entry, record);
}

Result<void> BlockCheck::Keep(NodeBlock block, BlockState state) {
  block.instance = context_.lease.instance;
  return state == block.state ? context_.Put(block) : context_.SetState(block, state);
}

Result<void> BlockCheck::Missing(NodeBlock block) {
  // A claim that did not come to be, or was not old enough: it is made anew elsewhere.
  if (!HasRight(block.state)) return context_.Erase(block);
  if (block.nonce.empty()) block.nonce = context_.Nonce();
  RH_TRY(context_.cluster.Create(KeyOf(block), Encode(context_.RecordOf(block, true))));
  context_.Tell(LeaseEvent::Kind::kTakenBack, block, "it was missing in the cluster store");
  return Keep(block, block.state == BlockState::kLost ? BlockState::kUsable : block.state);
}

Result<void> BlockCheck::Ours(NodeBlock block, const LeaseEntry& entry, const BlockRecord& record) {
  const bool claim = block.state == BlockState::kClaiming || block.state == BlockState::kProbation;
  if (claim && record.nonce != block.nonce) {
    // Of a claim that this node has forgotten, or of a time before.
    block.nonce.clear();
    return Keep(block, BlockState::kReturning);
  }
  if (block.nonce.empty() && block.state != BlockState::kReturning) block.nonce = record.nonce;
  BlockRecord wanted = context_.RecordOf(block, claim ? record.leased : true);
  if (block.state == BlockState::kReturning) wanted.nonce = record.nonce;
  if (record != wanted) RH_TRY(context_.cluster.Update(entry, Encode(wanted)));
  return Keep(block, block.state == BlockState::kLost ? BlockState::kUsable : block.state);
}

Result<void> BlockCheck::Others(NodeBlock block, const LeaseEntry& entry, const BlockRecord& record) {
  if (!HasRight(block.state)) {
    if (block.state != BlockState::kReturning)
      context_.Tell(LeaseEvent::Kind::kGivenUp, block, "node " + record.node + " has it");
    return context_.Erase(block);
  }
  if (record.leased) return Lose(block, record);
  if (block.nonce.empty()) block.nonce = context_.Nonce();
  RH_TRY(context_.cluster.Update(entry, Encode(context_.RecordOf(block, true))));
  context_.Tell(LeaseEvent::Kind::kTakenBack, block, "node " + record.node + " had it on probation");
  return Keep(block, block.state == BlockState::kLost ? BlockState::kUsable : block.state);
}

Result<void> BlockCheck::Lose(const NodeBlock& block, const BlockRecord& record) {
  if (block.state == BlockState::kLost) return {};
  const auto held = RH_TRY(context_.book.Held(block));
  RH_TRY(context_.SetState(block, BlockState::kLost));
  context_.Tell(LeaseEvent::Kind::kLost, block, "node " + record.node + " leases it; " + Shown(held));
  return {};
}

Result<void> BlockCheck::LookAtLost() {
  if (lost_looked_at_ == context_.lease.counter) return {};
  std::vector<NodeBlock> lost;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kLost && context_.LayoutOf(name.pool) != nullptr) lost.push_back(block);
  }
  for (const NodeBlock& block : lost) {
    if (context_.Spent()) return {};
    RH_TRY_WRAP(CheckOne(block), "looking at " + Describe(KeyOf(block)));
  }
  lost_looked_at_ = context_.lease.counter;
  return {};
}

}  // namespace railhead::ipam
