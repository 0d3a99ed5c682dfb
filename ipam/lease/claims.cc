#include <algorithm>
#include <utility>
#include <vector>

#include "ipam/lease/leaser.h"

namespace railhead::ipam {
namespace {

// Taken blocks that one question shows; a pool is divided into at most a few thousand.
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

// The time of a claim is that of the next step: it was made by then for sure.
Result<void> Claims::BeginProbations() {
  for (NodeBlock block : BlocksIn(context_, BlockState::kProbation)) {
    if (block.boot_id == context_.now.boot_id) continue;
    block.boot_id = context_.now.boot_id;
    block.since_ms = context_.now.boottime_ms;
    block.seen_with = context_.lease.counter;
    RH_TRY(context_.Put(block));
  }
  return {};
}

bool Claims::IsOver(const NodeBlock& block) const {
  return block.boot_id == context_.now.boot_id && context_.lease.counter > block.seen_with &&
         context_.now.boottime_ms >= block.since_ms + Milliseconds(context_.settings.times.Probation());
}

Result<void> Claims::Confirm() {
  std::map<std::string, Result<void>> layouts;
  for (const NodeBlock& block : BlocksIn(context_, BlockState::kProbation)) {
    if (!IsOver(block)) continue;
    if (context_.Spent()) return {};
    const PoolLayout* layout = context_.LayoutOf(block.pool);
    if (layout == nullptr) {
      RH_TRY(context_.SetState(block, BlockState::kReturning));
      continue;
    }
    if (!layouts.contains(block.pool)) layouts.emplace(block.pool, check_.CheckLayout(*layout, false));
    if (const auto& good = layouts.at(block.pool); !good) {
      if (good.error().code != ErrorCode::kConflict) return good;
      context_.Tell(LeaseEvent::Kind::kOtherLayout, block, good.error().message);
      RH_TRY(context_.SetState(block, BlockState::kReturning));
      continue;
    }
    RH_TRY_WRAP(ConfirmOne(block), "confirming " + Describe(KeyOf(block)));
  }
  return {};
}

Result<void> Claims::ConfirmOne(const NodeBlock& block) {
  auto cached = claimed_.extract(NameOf(block));
  std::optional<LeaseEntry> entry;
  if (!cached.empty()) {
    entry = std::move(cached.mapped());
  } else {
    entry = RH_TRY(context_.cluster.Get(KeyOf(block)));
  }
  if (!entry) return GiveUp(block, "the claim is not in the cluster store any more");
  const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
  if (record.node != context_.settings.node || record.nonce != block.nonce)
    return GiveUp(block, "node " + record.node + " has taken it back");
  if (!record.leased || record.instance != context_.lease.instance) {
    auto confirmed = context_.cluster.Update(*entry, Encode(context_.RecordOf(block, true)));
    // It is read again.
    if (!confirmed && confirmed.error().code == ErrorCode::kConflict) {
      context_.more = true;
      return {};
    }
    if (!confirmed) return Fail(std::move(confirmed.error()));
  }
  NodeBlock usable = block;
  usable.instance = context_.lease.instance;
  RH_TRY(context_.SetState(usable, BlockState::kUsable));
  context_.Tell(LeaseEvent::Kind::kUsable, block);
  return {};
}

Result<void> Claims::GiveUp(const NodeBlock& block, const std::string& why) {
  Search& search = searches_[block.pool];
  search.from = block.index + 1;
  claimed_.erase(NameOf(block));
  RH_TRY(context_.Erase(block));
  context_.Tell(LeaseEvent::Kind::kGivenUp, block, why);
  context_.more = true;
  return {};
}

Result<void> Claims::Claim(const std::map<std::string, std::uint64_t>& free) {
  if (sign_.Undisturbed()) {
    for (const PoolLayout& layout : context_.settings.pools) {
      const auto of_pool = free.find(layout.pool());
      std::uint64_t coming = of_pool == free.end() ? 0 : of_pool->second;
      for (const auto& [name, block] : context_.blocks) {
        const bool claim = block.state == BlockState::kClaiming || block.state == BlockState::kProbation;
        if (claim && name.pool == layout.pool()) coming += layout.AddressesOf(name.index);
      }
      if (coming >= context_.settings.low_water || context_.Spent()) continue;
      RH_TRY_WRAP(Want(layout), "looking for a free block of " + layout.pool());
    }
  }
  return Make();
}

// Until the next sign of life: there is no block as `why` says, which is told once.
void Claims::PutOff(Search& search, LeaseEvent why) {
  search.not_before_ms = context_.now.boottime_ms + Milliseconds(context_.settings.times.renew);
  if (search.told == why.detail) return;
  search.told = why.detail;
  context_.events.push_back(std::move(why));
}

Result<void> Claims::Want(const PoolLayout& layout) {
  Search& search = searches_[layout.pool()];
  if (context_.now.boottime_ms < search.not_before_ms) return {};
  if (!search.layout_known) {
    const auto known = check_.CheckLayout(layout, false);
    if (!known && known.error().code == ErrorCode::kConflict) {
      PutOff(search, {LeaseEvent::Kind::kOtherLayout, layout.pool(), {}, known.error().message});
      return {};
    }
    RH_TRY(known);
    search.layout_known = true;
  }
  const auto index = RH_TRY(FindFree(layout, search));
  if (!index) return {};
  NodeBlock block{layout.pool(), *index, layout.Block(*index), BlockState::kClaiming};
  block.instance = context_.lease.instance;
  block.nonce = context_.Nonce();
  search.from = *index + 1;
  search.told.clear();
  return context_.SetState(block, BlockState::kClaiming);
}

// The first block from `from` on that the book does not know.
std::optional<std::uint64_t> Claims::NextUnknown(const PoolLayout& layout, std::uint64_t from) const {
  auto next = layout.NextFrom(from);
  while (next && context_.blocks.contains({layout.pool(), *next})) next = layout.NextFrom(*next + 1);
  return next;
}

// In what the cluster store lists from `from` on. `unsure`: the list ended there.
Result<std::optional<std::uint64_t>> Claims::FirstGap(const PoolLayout& layout, std::uint64_t from,
                                                      bool* unsure) {
  const auto taken = RH_TRY(context_.cluster.Blocks(layout.pool(), from, kListLimit));
  auto gap = NextUnknown(layout, from);
  *unsure = false;
  for (const LeaseEntry& entry : taken) {
    if (!gap || *gap < entry.key.index) return gap;
    gap = NextUnknown(layout, entry.key.index + 1);
  }
  *unsure = taken.size() == kListLimit;
  return gap;
}

// From where the last search ended, once around.
Result<std::optional<std::uint64_t>> Claims::FindFree(const PoolLayout& layout, Search& search) {
  if (!search.from) search.from = layout.StartOf(context_.settings.node);
  if (!search.begin) search.begin = search.from;
  for (int lists = 0; lists < kListsPerStep && !context_.Spent(); ++lists) {
    bool unsure = false;
    const auto gap = RH_TRY(FirstGap(layout, *search.from, &unsure));
    const bool around = search.wrapped && (!gap || *gap >= *search.begin);
    if (around) {
      PoolFull(layout, search);
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

void Claims::PoolFull(const PoolLayout& layout, Search& search) {
  search.begin.reset();
  search.wrapped = false;
  search.from = layout.StartOf(context_.settings.node);
  PutOff(search, {LeaseEvent::Kind::kPoolFull,
                  layout.pool(),
                  {},
                  "all of its " + std::to_string(layout.Count()) + " blocks of " +
                      std::to_string(layout.size()) + " addresses are leased"});
}

// Listed first: what a dead node was about to claim is found by whoever takes its blocks.
Result<void> Claims::Make() {
  const auto claims = BlocksIn(context_, BlockState::kClaiming);
  if (claims.empty()) return {};
  const bool listed = std::ranges::all_of(claims, [&](const NodeBlock& block) { return sign_.Lists(block); });
  if (!listed) {
    RH_TRY(sign_.Renew());
    // The record was not as it was left.
    if (context_.lease.checking) {
      context_.more = true;
      return {};
    }
  }
  for (const NodeBlock& block : claims) {
    if (context_.Spent()) return {};
    RH_TRY_WRAP(MakeOne(block), "claiming " + Describe(KeyOf(block)));
  }
  return {};
}

Result<void> Claims::MakeOne(NodeBlock block) {
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
      return GiveUp(block, "node " + record.node + " was first");
    made = *entry;
  }
  claimed_[NameOf(block)] = std::move(*made);
  block.state = BlockState::kProbation;
  block.boot_id.clear();
  RH_TRY(context_.Put(block));
  context_.Tell(LeaseEvent::Kind::kClaimed, block);
  context_.more = true;
  return {};
}

std::optional<std::uint64_t> Claims::next_ms() const {
  std::optional<std::uint64_t> next;
  const auto sooner = [&](std::uint64_t at) { next = std::min(next.value_or(at), at); };
  for (const NodeBlock& block : BlocksIn(context_, BlockState::kProbation)) {
    if (block.boot_id == context_.now.boot_id && !IsOver(block) && context_.lease.counter > block.seen_with)
      sooner(block.since_ms + Milliseconds(context_.settings.times.Probation()));
  }
  for (const auto& [pool, search] : searches_) {
    if (search.not_before_ms > context_.now.boottime_ms) sooner(search.not_before_ms);
  }
  return next;
}

Result<void> Returns::Count() {
  std::vector<NodeBlock> blocks;
  for (const auto& [name, block] : context_.blocks) blocks.push_back(block);
  taken_.clear();
  free_.clear();
  if (blocks.empty()) return {};
  const auto taken = RH_TRY(context_.book.Taken(blocks));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    taken_[NameOf(blocks[i])] = taken.at(i);
    const PoolLayout* layout = context_.LayoutOf(blocks[i].pool);
    if (blocks[i].state != BlockState::kUsable || layout == nullptr) continue;
    const std::uint64_t all = layout->AddressesOf(blocks[i].index);
    free_[blocks[i].pool] += all - std::min(all, taken[i]);
  }
  return {};
}

Result<bool> Returns::Retire(const NodeBlock& block) {
  if (!RH_TRY(context_.book.Retire(block))) return false;
  context_.blocks[NameOf(block)].state = BlockState::kReturning;
  return true;
}

// The highest first, so that what stays lies close together.
Result<void> Returns::RetireEmpty() {
  std::vector<NodeBlock> empty;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kUsable && taken_[name] == 0) empty.push_back(block);
  }
  std::reverse(empty.begin(), empty.end());
  for (const NodeBlock& block : empty) {
    const PoolLayout* layout = context_.LayoutOf(block.pool);
    if (layout == nullptr) {  // not a leased subnet of this fabric any more
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

Result<void> Returns::RetireFormer() {
  std::vector<NodeBlock> over;
  const auto reclaim_ms = static_cast<std::uint64_t>(context_.settings.times.reclaim.count());
  const auto rest_ms = static_cast<std::uint64_t>(context_.settings.times.rest.count());
  for (const auto& [name, block] : context_.blocks) {
    if (block.state != BlockState::kFormer || taken_[name] != 0) continue;
    // No pod outlives a restart; what the last ones had has to rest as well.
    const bool restarted = block.boot_id != context_.now.boot_id && context_.now.boottime_ms >= rest_ms;
    const bool late = reclaim_ms != 0 && context_.now.boottime_ms >= block.since_ms + reclaim_ms;
    if (restarted || late) over.push_back(block);
  }
  for (const NodeBlock& block : over) RH_TRY(Retire(block));
  return {};
}

Result<void> Returns::ForgetLost() {
  std::vector<NodeBlock> lost;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kLost && taken_[name] == 0) lost.push_back(block);
  }
  for (const NodeBlock& block : lost) RH_TRY(context_.Erase(block));
  return {};
}

Result<void> Returns::Run() {
  RH_TRY(RetireEmpty());
  RH_TRY(RetireFormer());
  RH_TRY(ForgetLost());
  std::vector<NodeBlock> returning;
  for (const auto& [name, block] : context_.blocks) {
    if (block.state == BlockState::kReturning) returning.push_back(block);
  }
  for (const NodeBlock& block : returning) {
    if (context_.Spent()) return {};
    RH_TRY_WRAP(GiveBack(block), "returning " + Describe(KeyOf(block)));
  }
  return {};
}

Result<void> Returns::GiveBack(const NodeBlock& block) {
  const auto entry = RH_TRY(context_.cluster.Get(KeyOf(block)));
  if (entry) {
    const BlockRecord record = RH_TRY(ParseBlockRecord(*entry));
    // Without a nonce: whatever this node's record there says.
    const bool ours =
        record.node == context_.settings.node && (block.nonce.empty() || record.nonce == block.nonce);
    if (ours) RH_TRY(context_.cluster.Remove(*entry));
  }
  RH_TRY(context_.Erase(block));
  context_.Tell(LeaseEvent::Kind::kReturned, block);
  return {};
}

}  // namespace railhead::ipam
