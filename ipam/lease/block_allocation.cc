#include <algorithm>
#include <utility>
#include <vector>

#include "ipam/lease/leaser.h"

namespace railhead::ipam {
namespace {

// Allocated blocks that one request lists; a pool has at most a few thousand.
constexpr std::size_t kListLimit = 64;
constexpr int kListsPerStep = 4;

std::uint64_t Milliseconds(LeaseTimes::Milliseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

std::vector<NodeBlock> BlocksIn(const LeaseContext& context, BlockState state) {
  std::vector<NodeBlock> blocks;
  for (const auto& [name, block] : context.blocks) {
    if (block.state == state) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

// The provisional time of a block starts at the step after its allocation: its record certainly exists then.
Result<void> BlockAllocator::StartProvisional() {
  for (NodeBlock block : BlocksIn(context_, BlockState::kProvisional)) {
    if (block.boot_id == context_.now.boot_id) continue;
    block.boot_id = context_.now.boot_id;
    block.since_ms = context_.now.boottime_ms;
    block.allocated_at = context_.lease.counter;
    RH_TRY(context_.Put(block));
  }
  return {};
}

bool BlockAllocator::IsProvisionalTimeOver(const NodeBlock& block) const {
  return block.boot_id == context_.now.boot_id && context_.lease.counter > block.allocated_at &&
         context_.now.boottime_ms >= block.since_ms + Milliseconds(context_.settings.times.ProvisionalTime());
}

Result<void> BlockAllocator::Confirm() {
  std::map<std::string, Result<void>> layouts;
  for (const NodeBlock& block : BlocksIn(context_, BlockState::kProvisional)) {
    if (!IsProvisionalTimeOver(block)) continue;
    if (context_.OutOfCalls()) return {};
    const PoolLayout* layout = context_.LayoutOf(block.pool);
    if (layout == nullptr) {
      RH_TRY(context_.SetState(block, BlockState::kReturning));
      continue;
    }
    if (!layouts.contains(block.pool)) layouts.emplace(block.pool, check_.CheckLayout(*layout, false));
    if (const auto& good = layouts.at(block.pool); !good) {
      if (good.error().code != ErrorCode::kConflict) return good;
      context_.AddEvent(LeaseEvent::Kind::kOtherBlockSize, block, good.error().message);
      RH_TRY(context_.SetState(block, BlockState::kReturning));
      continue;
    }
    RH_TRY_WRAP(ConfirmOne(block), "confirming " + Describe(KeyOf(block)));
  }
  return {};
}

Result<void> BlockAllocator::ConfirmOne(const NodeBlock& block) {
  auto cached = created_.extract(NameOf(block));
  std::optional<LeaseEntry> entry;
  if (!cached.empty()) {
    entry = std::move(cached.mapped());
  } else {
    entry = RH_TRY(context_.cluster.Get(KeyOf(block)));
  }
  if (!entry) return Abandon(block, "the cluster store no longer has it");
  const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
  if (record.node != context_.settings.node || record.nonce != block.nonce)
    return Abandon(block, "node " + record.node + " has reacquired it");
  if (!record.leased || record.instance != context_.lease.instance) {
    auto confirmed = context_.cluster.Update(*entry, Encode(context_.RecordOf(block, true)));
    // The next step reads it again.
    if (!confirmed && confirmed.error().code == ErrorCode::kConflict) {
      context_.more = true;
      return {};
    }
    if (!confirmed) return Fail(std::move(confirmed.error()));
  }
  NodeBlock usable = block;
  usable.instance = context_.lease.instance;
  RH_TRY(context_.SetState(usable, BlockState::kUsable));
  context_.AddEvent(LeaseEvent::Kind::kUsable, block);
  return {};
}

Result<void> BlockAllocator::Abandon(const NodeBlock& block, const std::string& why) {
  Search& search = searches_[block.pool];
  search.from = block.index + 1;
  created_.erase(NameOf(block));
  RH_TRY(context_.Erase(block));
  context_.AddEvent(LeaseEvent::Kind::kAbandoned, block, why);
  context_.more = true;
  return {};
}

Result<void> BlockAllocator::Allocate(const std::map<std::string, std::uint64_t>& free) {
  if (heartbeat_.MayAllocate()) {
    for (const PoolLayout& layout : context_.settings.pools) {
      const auto of_pool = free.find(layout.pool());
      std::uint64_t coming = of_pool == free.end() ? 0 : of_pool->second;
      for (const auto& [name, block] : context_.blocks) {
        const bool unconfirmed =
            block.state == BlockState::kAllocating || block.state == BlockState::kProvisional;
        if (unconfirmed && name.pool == layout.pool()) coming += layout.AddressesOf(name.index);
      }
      if (coming >= context_.settings.low_water || context_.OutOfCalls()) continue;
      RH_TRY_WRAP(StartAllocation(layout), "looking for a free block of " + layout.pool());
    }
  }
  return CreateRecords();
}

// Stops the search until the next heartbeat. No block is available, for the reason `why`, which is reported
// once.
void BlockAllocator::Postpone(Search& search, LeaseEvent why) {
  search.not_before_ms = context_.now.boottime_ms + Milliseconds(context_.settings.times.renew);
  if (search.reported == why.detail) return;
  search.reported = why.detail;
  context_.events.push_back(std::move(why));
}

Result<void> BlockAllocator::StartAllocation(const PoolLayout& layout) {
  Search& search = searches_[layout.pool()];
  if (context_.now.boottime_ms < search.not_before_ms) return {};
  if (!search.layout_known) {
    const auto known = check_.CheckLayout(layout, false);
    if (!known && known.error().code == ErrorCode::kConflict) {
      Postpone(search, {LeaseEvent::Kind::kOtherBlockSize, layout.pool(), {}, known.error().message});
      return {};
    }
    RH_TRY(known);
    search.layout_known = true;
  }
  const auto index = RH_TRY(FindFree(layout, search));
  if (!index) return {};
  NodeBlock block{layout.pool(), *index, layout.Block(*index), BlockState::kAllocating};
  block.instance = context_.lease.instance;
  block.nonce = context_.Nonce();
  search.from = *index + 1;
  search.reported.clear();
  return context_.SetState(block, BlockState::kAllocating);
}

// The first block from `from` on that the local lease state does not have.
std::optional<std::uint64_t> BlockAllocator::NextUnknown(const PoolLayout& layout, std::uint64_t from) const {
  auto next = layout.NextFrom(from);
  while (next && context_.blocks.contains({layout.pool(), *next})) next = layout.NextFrom(*next + 1);
  return next;
}

// The first gap in the cluster store's list from `from` on. `unsure`: the list ended there.
Result<std::optional<std::uint64_t>> BlockAllocator::FirstGap(const PoolLayout& layout, std::uint64_t from,
                                                              bool* unsure) {
  const auto allocated = RH_TRY(context_.cluster.Blocks(layout.pool(), from, kListLimit));
  auto gap = NextUnknown(layout, from);
  *unsure = false;
  for (const LeaseEntry& entry : allocated) {
    if (!gap || *gap < entry.key.index) return gap;
    gap = NextUnknown(layout, entry.key.index + 1);
  }
  *unsure = allocated.size() == kListLimit;
  return gap;
}

// From where the last search ended, once around.
Result<std::optional<std::uint64_t>> BlockAllocator::FindFree(const PoolLayout& layout, Search& search) {
  if (!search.from) search.from = layout.StartOf(context_.settings.node);
  if (!search.begin) search.begin = search.from;
  for (int lists = 0; lists < kListsPerStep && !context_.OutOfCalls(); ++lists) {
    bool unsure = false;
    const auto gap = RH_TRY(FirstGap(layout, *search.from, &unsure));
    const bool around = search.wrapped && (!gap || *gap >= *search.begin);
    if (around) {
      ReportPoolFull(layout, search);
      return std::nullopt;
    }
    if (gap && !unsure) {
      search.begin.reset();
      search.wrapped = false;
      return gap;
    }
    search.wrapped = search.wrapped || !gap;
    search.from = gap.value_or(0);
  }
  context_.more = true;
  return std::nullopt;
}

void BlockAllocator::ReportPoolFull(const PoolLayout& layout, Search& search) {
  search.begin.reset();
  search.wrapped = false;
  search.from = layout.StartOf(context_.settings.node);
  Postpone(search, {LeaseEvent::Kind::kPoolFull,
                    layout.pool(),
                    {},
                    "all of its " + std::to_string(layout.Count()) + " blocks of " +
                        std::to_string(layout.size()) + " addresses are leased"});
}

// Lists the blocks first: a node that reclaims a dead node's blocks then also finds those that it was about
// to allocate.
Result<void> BlockAllocator::CreateRecords() {
  const auto blocks = BlocksIn(context_, BlockState::kAllocating);
  if (blocks.empty()) return {};
  const bool listed =
      std::ranges::all_of(blocks, [&](const NodeBlock& block) { return heartbeat_.IsListed(block); });
  if (!listed) {
    RH_TRY(heartbeat_.Renew());
    // The record had changed.
    if (context_.lease.checking) {
      context_.more = true;
      return {};
    }
  }
  for (const NodeBlock& block : blocks) {
    if (context_.OutOfCalls()) return {};
    RH_TRY_WRAP(CreateRecord(block), "allocating " + Describe(KeyOf(block)));
  }
  return {};
}

Result<void> BlockAllocator::CreateRecord(NodeBlock block) {
  auto made = context_.cluster.Create(KeyOf(block), Encode(context_.RecordOf(block, false)));
  if (!made) {
    if (made.error().code != ErrorCode::kConflict) return Fail(std::move(made.error()));
    const auto entry = RH_TRY(context_.cluster.Get(KeyOf(block)));
    if (!entry) {
      context_.more = true;
      return {};
    }
    const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
    if (record.node != context_.settings.node || record.nonce != block.nonce)
      return Abandon(block, "node " + record.node + " was first");
    made = *entry;
  }
  created_[NameOf(block)] = std::move(*made);
  block.state = BlockState::kProvisional;
  block.boot_id.clear();
  RH_TRY(context_.Put(block));
  context_.AddEvent(LeaseEvent::Kind::kAllocated, block);
  context_.more = true;
  return {};
}

std::optional<std::uint64_t> BlockAllocator::next_ms() const {
  std::optional<std::uint64_t> next;
  const auto sooner = [&](std::uint64_t at) { next = std::min(next.value_or(at), at); };
  for (const NodeBlock& block : BlocksIn(context_, BlockState::kProvisional)) {
    if (block.boot_id == context_.now.boot_id && !IsProvisionalTimeOver(block) &&
        context_.lease.counter > block.allocated_at)
      sooner(block.since_ms + Milliseconds(context_.settings.times.ProvisionalTime()));
  }
  for (const auto& [pool, search] : searches_) {
    if (search.not_before_ms > context_.now.boottime_ms) sooner(search.not_before_ms);
  }
  return next;
}

Result<void> BlockReturner::CountFree() {
  std::vector<NodeBlock> blocks;
  for (const auto& [name, block] : context_.blocks) blocks.push_back(block);
  in_use_.clear();
  free_.clear();
  if (blocks.empty()) return {};
  const auto in_use = RH_TRY(context_.lease_state.CountInUse(blocks));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    in_use_[NameOf(blocks[i])] = in_use.at(i);
    const PoolLayout* layout = context_.LayoutOf(blocks[i].pool);
    if (blocks[i].state != BlockState::kUsable || layout == nullptr) continue;
    const std::uint64_t all = layout->AddressesOf(blocks[i].index);
    free_[blocks[i].pool] += all - std::min(all, in_use[i]);
  }
  return {};
}

Result<bool> BlockReturner::Retire(const NodeBlock& block) {
  if (!RH_TRY(context_.lease_state.Retire(block))) return false;
  context_.blocks[NameOf(block)].state = BlockState::kReturning;
  return true;
}

// Returns the highest blocks first, so that the remaining ones lie close together.
Result<void> BlockReturner::RetireEmpty() {
  std::vector<NodeBlock> empty;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kUsable && in_use_[name] == 0) empty.push_back(block);
  }
  std::reverse(empty.begin(), empty.end());
  for (const NodeBlock& block : empty) {
    const PoolLayout* layout = context_.LayoutOf(block.pool);
    if (layout == nullptr) {  // no longer a leased subnet of this fabric
      RH_TRY(Retire(block));
      continue;
    }
    std::uint64_t& free = free_[block.pool];
    const std::uint64_t less = layout->AddressesOf(block.index);
    if (free <= layout->size() + context_.settings.low_water || free < less + context_.settings.low_water)
      continue;
    if (RH_TRY(Retire(block))) free -= less;
  }
  return {};
}

Result<void> BlockReturner::RetireOrphaned() {
  std::vector<NodeBlock> over;
  const auto reclaim_ms = static_cast<std::uint64_t>(context_.settings.times.reclaim.count());
  const auto reuse_delay_ms = static_cast<std::uint64_t>(context_.settings.times.reuse_delay.count());
  for (const auto& [name, block] : context_.blocks) {
    if (block.state != BlockState::kOrphaned || in_use_[name] != 0) continue;
    // No pod outlives a restart. The addresses of the last pods still have to wait for their reuse delay.
    const bool restarted =
        block.boot_id != context_.now.boot_id && context_.now.boottime_ms >= reuse_delay_ms;
    const bool late = reclaim_ms != 0 && context_.now.boottime_ms >= block.since_ms + reclaim_ms;
    if (restarted || late) over.push_back(block);
  }
  for (const NodeBlock& block : over) RH_TRY(Retire(block));
  return {};
}

Result<void> BlockReturner::EraseLost() {
  std::vector<NodeBlock> lost;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kLost && in_use_[name] == 0) lost.push_back(block);
  }
  for (const NodeBlock& block : lost) RH_TRY(context_.Erase(block));
  return {};
}

Result<void> BlockReturner::Run() {
  RH_TRY(RetireEmpty());
  RH_TRY(RetireOrphaned());
  RH_TRY(EraseLost());
  std::vector<NodeBlock> returning;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kReturning) returning.push_back(block);
  }
  for (const NodeBlock& block : returning) {
    if (context_.OutOfCalls()) return {};
    RH_TRY_WRAP(ReturnBlock(block), "returning " + Describe(KeyOf(block)));
  }
  return {};
}

Result<void> BlockReturner::ReturnBlock(const NodeBlock& block) {
  const auto entry = RH_TRY(context_.cluster.Get(KeyOf(block)));
  if (entry) {
    const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
    // Without a nonce: any record of this node.
    const bool ours =
        record.node == context_.settings.node && (block.nonce.empty() || record.nonce == block.nonce);
    if (ours) RH_TRY(context_.cluster.Remove(*entry));
  }
  RH_TRY(context_.Erase(block));
  context_.AddEvent(LeaseEvent::Kind::kReturned, block);
  return {};
}

}  // namespace railhead::ipam
