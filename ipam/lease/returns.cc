#include "ipam/lease/returns.h"

#include <algorithm>
#include <vector>

namespace railhead {

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

}  // namespace railhead
