#include "ipam/lease/claims.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace railhead {
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
  const bool listed =
      std::all_of(claims.begin(), claims.end(), [&](const NodeBlock& block) { return sign_.Lists(block); });
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

}  // namespace railhead
