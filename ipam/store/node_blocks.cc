#include "ipam/store/node_blocks.h"

#include <algorithm>
#include <utility>

#include "ipam/store/store.h"
#include "netns/base/bytes.h"

namespace railhead::ipam {
namespace {

using bytes::Number;
using bytes::Reader;
using bytes::Text;

constexpr char kBlockTable = 'B';

Error MalformedBlocks(std::string_view what) {
  return {ErrorCode::kIo, "address store: malformed " + std::string(what) + " record",
          "the store was written by a newer version or is damaged: restore it from a backup", 0};
}

std::string BlockPrefix(std::string_view pool) {
  std::string key(1, kBlockTable);
  key.append(pool).push_back('\0');
  return key;
}

std::string Encode(const NodeBlock& block) {
  return Number(static_cast<std::uint64_t>(block.state)) + Text(ipam::Encode(block.range.first)) +
         Text(ipam::Encode(block.range.last)) + Text(block.instance) + Text(block.nonce) +
         Text(block.boot_id) + Number(block.since_ms) + Number(block.allocated_at);
}

Result<NodeBlock> DecodeBlock(std::string_view key, std::string_view value) {
  NodeBlock block;
  const auto end_of_pool = key.find('\0');
  if (end_of_pool == std::string_view::npos) return Fail(MalformedBlocks("block"));
  block.pool = key.substr(1, end_of_pool - 1);
  Reader name(key.substr(end_of_pool + 1));
  block.index = name.Number();
  Reader reader(value);
  const std::uint64_t state = reader.Number();
  block.state = static_cast<BlockState>(state);
  const std::string first = reader.Text();
  const std::string last = reader.Text();
  block.instance = reader.Text();
  block.nonce = reader.Text();
  block.boot_id = reader.Text();
  block.since_ms = reader.Number();
  block.allocated_at = reader.Number();
  const bool known = state >= static_cast<std::uint64_t>(BlockState::kAllocating) &&
                     state <= static_cast<std::uint64_t>(BlockState::kLost);
  if (!reader.Done() || !name.Done() || !known) return Fail(MalformedBlocks("block"));
  block.range.first = RH_TRY(DecodeAddress(first));
  block.range.last = RH_TRY(DecodeAddress(last));
  return block;
}

Result<std::vector<NodeBlock>> BlocksUnder(const LmdbTxn& txn, std::string_view prefix) {
  std::vector<NodeBlock> blocks;
  const auto entries = RH_TRY(txn.Under(prefix));
  for (const KeyValue& entry : entries) {
    if (entry.key.size() == 1) continue;  // the lease
    blocks.push_back(RH_TRY(DecodeBlock(entry.key, entry.value)));
  }
  return blocks;
}

std::string Seconds(std::uint64_t ms) {
  return std::to_string(ms / 1000) + " s";
}

// Why no block of the pool is usable.
Error NoBlock(const std::string& pool, const std::vector<NodeBlock>& blocks) {
  Error error;
  error.code = ErrorCode::kBusy;
  error.message = "this node has no usable block of subnet " + pool;
  for (const BlockState state : {BlockState::kAllocating, BlockState::kProvisional, BlockState::kReturning,
                                 BlockState::kOrphaned, BlockState::kLost}) {
    const auto count = std::ranges::count(blocks, state, &NodeBlock::state);
    if (count != 0)
      error.message.append(", ").append(std::to_string(count)).append(" ").append(NameOf(state));
  }
  error.hint = blocks.empty()
                   ? "check that railheadd, which leases blocks, runs, and its log about the cluster store"
                   : "try again later: a new block is usable two renewSeconds after its allocation";
  return error;
}

}  // namespace

std::string_view NameOf(BlockState state) {
  switch (state) {
    case BlockState::kAllocating:
      return "allocating";
    case BlockState::kProvisional:
      return "provisional";
    case BlockState::kUsable:
      return "usable";
    case BlockState::kReturning:
      return "returning";
    case BlockState::kOrphaned:
      return "orphaned";
    case BlockState::kLost:
      return "lost";
  }
  return "unknown";
}

std::uint64_t NodeLease::PausedMs(const ClockReading& now) const {
  // A fence is at most half of reclaim_ms: with a quarter more, blocks are still this node's.
  constexpr std::int64_t kPart = 4;
  if (reclaim_ms == 0 || renewed_wall_seconds == 0 || boot_id != now.boot_id) return 0;
  const std::int64_t wall_ms = (now.wall_seconds - renewed_wall_seconds) * 1000;
  const std::int64_t passed_ms =
      static_cast<std::int64_t>(now.boottime_ms) - static_cast<std::int64_t>(renewed_ms);
  const std::int64_t paused_ms = wall_ms - std::max<std::int64_t>(passed_ms, 0);
  return paused_ms > static_cast<std::int64_t>(reclaim_ms) / kPart ? static_cast<std::uint64_t>(paused_ms)
                                                                   : 0;
}

Result<void> NodeLease::CheckValid(const ClockReading& now) const {
  if (boot_id.empty()) {
    return Fail(ErrorCode::kBusy,
                "the cluster store has not answered yet: this node may have lost its blocks",
                "check that railheadd runs, and its log about the cluster store");
  }
  if (boot_id != now.boot_id) {
    return Fail(
        ErrorCode::kBusy, "the cluster store has not answered since this node was started",
        "try again later: blocks are usable again after the cluster store's next answer to railheadd");
  }
  if (const std::uint64_t paused_ms = PausedMs(now); paused_ms != 0) {
    return Fail(
        ErrorCode::kBusy,
        "this machine was paused for " + Seconds(paused_ms) +
            ", or its clock was set: others may have reclaimed its blocks",
        "try again later: blocks are usable again after the cluster store's next answer to railheadd");
  }
  // A clock reading of before the renewal cannot be of this boot.
  const std::uint64_t age_ms = now.boottime_ms >= renewed_ms ? now.boottime_ms - renewed_ms : fence_ms;
  if (age_ms < fence_ms) return {};
  return Fail(ErrorCode::kBusy,
              "the cluster store has not answered for " + Seconds(age_ms) + ": after fenceSeconds (" +
                  Seconds(fence_ms) + ") no address is allocated",
              "repair the cluster store or the connection to it: railheadd renews by itself");
}

Result<std::optional<NodeLease>> ReadNodeLease(const LmdbTxn& txn) {
  const auto value = RH_TRY(txn.Get(std::string_view(&kBlockTable, 1)));
  if (!value) return std::nullopt;
  Reader reader(*value);
  NodeLease lease;
  lease.node = reader.Text();
  lease.machine = reader.Text();
  lease.instance = reader.Text();
  lease.previous = reader.Text();
  lease.session = reader.Text();
  lease.known_session = reader.Text();
  lease.counter = reader.Number();
  lease.checking = reader.Number() != 0;
  lease.boot_id = reader.Text();
  lease.renewed_ms = reader.Number();
  lease.fence_ms = reader.Number();
  if (!reader.Done()) {
    lease.renewed_wall_seconds = static_cast<std::int64_t>(reader.Number());
    lease.reclaim_ms = reader.Number();
  }
  if (!reader.Done()) return Fail(MalformedBlocks("lease"));
  return lease;
}

Result<void> WriteNodeLease(LmdbTxn& txn, const NodeLease& lease) {
  return txn.Put(std::string_view(&kBlockTable, 1),
                 Text(lease.node) + Text(lease.machine) + Text(lease.instance) + Text(lease.previous) +
                     Text(lease.session) + Text(lease.known_session) + Number(lease.counter) +
                     Number(lease.checking ? 1 : 0) + Text(lease.boot_id) + Number(lease.renewed_ms) +
                     Number(lease.fence_ms) + Number(static_cast<std::uint64_t>(lease.renewed_wall_seconds)) +
                     Number(lease.reclaim_ms));
}

Result<std::vector<NodeBlock>> ReadNodeBlocks(const LmdbTxn& txn, std::string_view pool) {
  return BlocksUnder(txn, BlockPrefix(pool));
}

Result<std::vector<NodeBlock>> ReadAllNodeBlocks(const LmdbTxn& txn) {
  return BlocksUnder(txn, std::string_view(&kBlockTable, 1));
}

Result<void> WriteNodeBlock(LmdbTxn& txn, const NodeBlock& block) {
  return txn.Put(BlockPrefix(block.pool) + Number(block.index), Encode(block));
}

Result<void> EraseNodeBlock(LmdbTxn& txn, std::string_view pool, std::uint64_t index) {
  return txn.Erase(BlockPrefix(pool) + Number(index));
}

Result<RangeSet> LeasedRanges(const LmdbTxn& txn, const AddressPool& pool, const ClockReading& now) {
  const auto lease = RH_TRY(ReadNodeLease(txn));
  RH_TRY_WRAP(lease.value_or(NodeLease{}).CheckValid(now), "leasing from subnet " + pool.name);
  const auto blocks = RH_TRY(ReadNodeBlocks(txn, pool.name));
  std::vector<IpRange> usable;
  for (const NodeBlock& block : blocks) {
    if (block.state == BlockState::kUsable) usable.push_back(block.range);
  }
  auto ranges = pool.ranges.Within(usable);
  if (!ranges) return Fail(NoBlock(pool.name, blocks));
  return std::move(*ranges);
}

}  // namespace railhead::ipam
