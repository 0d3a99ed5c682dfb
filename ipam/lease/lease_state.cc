#include <algorithm>
#include <set>
#include <utility>

#include "ipam/lease/context.h"
#include "ipam/store/ledger.h"
#include "ipam/store/store.h"

namespace railhead::ipam {
namespace {

// The next step frees more: a step shall not hold the store's lock for long.
constexpr std::size_t kFreeLimit = 256;

Result<std::uint64_t> CountUsed(LmdbTxn& txn, const NodeBlock& block) {
  StoredRuns runs(txn, block.pool);
  std::uint64_t in_use = 0;
  for (std::optional<IpAddress> at = block.range.last; at;) {
    const auto run = RH_TRY(runs.AtOrBefore(*at));
    if (!run || run->last < block.range.first) break;
    const IpAddress first = std::max(run->first, block.range.first);
    const IpAddress last = std::min(run->last, block.range.last);
    in_use += *last.Minus(first) + 1;
    if (run->first <= block.range.first) break;
    at = PreviousAddress(run->first);
  }
  return in_use;
}

// Whether any reuse delay was over.
Result<bool> EndReuseDelays(LmdbTxn& txn, const std::vector<NodeBlock>& blocks,
                            std::chrono::seconds reuse_delay, const ClockReading& now) {
  // The first write of a boot has more to do, and is not ours.
  if (RH_TRY(ReadHeader(txn)).boot_id != now.boot_id) return false;
  std::set<std::string> pools;
  for (const NodeBlock& block : blocks) pools.insert(block.pool);
  AddressLedger ledger = RH_TRY(AddressLedger::Open(txn, now));
  std::size_t freed = 0;
  for (const std::string& name : pools) {
    const auto subnet = IpPrefix::Parse(name);
    if (!subnet) continue;
    RangeSpec all;
    all.subnet = *subnet;
    auto ranges = RH_TRY(RangeSet::Make(all));
    const AddressPool pool{.name = name, .ranges = std::move(ranges), .reuse_delay = reuse_delay};
    freed += RH_TRY(ledger.FreeExpired(pool, kFreeLimit));
  }
  if (freed == 0) return false;
  RH_TRY(ledger.Stamp());
  return true;
}

class LmdbLeaseState : public LeaseStateStore {
 public:
  LmdbLeaseState(Root root, std::chrono::seconds reuse_delay, ClockSource clocks)
      : root_(std::move(root)), reuse_delay_(reuse_delay), clocks_(std::move(clocks)) {}

  Result<LeaseState> Read() override {
    LeaseState state;
    const auto read = Transact([&](LmdbTxn& txn, const ClockReading& /*now*/) -> Result<bool> {
      state.lease = RH_TRY(ReadNodeLease(txn));
      state.blocks = RH_TRY(ReadAllNodeBlocks(txn));
      return false;
    });
    if (!read) return Fail(read.error());
    return state;
  }

  Result<void> Write(const LeaseStateChange& change) override {
    return Transact([&](LmdbTxn& txn, const ClockReading& /*now*/) -> Result<bool> {
      if (change.lease) RH_TRY(WriteNodeLease(txn, *change.lease));
      for (const NodeBlock& block : change.put) RH_TRY(WriteNodeBlock(txn, block));
      for (const BlockName& name : change.erase) RH_TRY(EraseNodeBlock(txn, name.pool, name.index));
      return true;
    });
  }

  Result<std::vector<std::uint64_t>> CountInUse(const std::vector<NodeBlock>& blocks) override {
    std::vector<std::uint64_t> in_use;
    const auto counted = Transact([&](LmdbTxn& txn, const ClockReading& now) -> Result<bool> {
      const bool changed = RH_TRY(EndReuseDelays(txn, blocks, reuse_delay_, now));
      for (const NodeBlock& block : blocks) in_use.push_back(RH_TRY(CountUsed(txn, block)));
      return changed;
    });
    if (!counted) return Fail(counted.error());
    return in_use;
  }

  Result<std::vector<AddressRecord>> HeldIn(const NodeBlock& block) override {
    auto store = RH_TRY(AddressStore::Open(root_, clocks_));
    auto records = RH_TRY(store.List());
    records.erase(std::remove_if(records.begin(), records.end(),
                                 [&](const AddressRecord& record) {
                                   return record.state != AddressState::kHeld || record.pool != block.pool ||
                                          !block.range.Contains(record.address);
                                 }),
                  records.end());
    return records;
  }

  Result<bool> Retire(const NodeBlock& block) override {
    bool retired = false;
    const auto changed = Transact([&](LmdbTxn& txn, const ClockReading& /*now*/) -> Result<bool> {
      if (RH_TRY(CountUsed(txn, block)) != 0) return false;
      NodeBlock returning = block;
      returning.state = BlockState::kReturning;
      RH_TRY(WriteNodeBlock(txn, returning));
      retired = true;
      return true;
    });
    if (!changed) return Fail(changed.error());
    return retired;
  }

 private:
  Result<void> Transact(const AddressStore::Change& change) {
    auto store = RH_TRY(AddressStore::Open(root_, clocks_));
    return store.Transact(change);
  }

  const Root root_;
  const std::chrono::seconds reuse_delay_;
  const ClockSource clocks_;
};

}  // namespace

std::unique_ptr<LeaseStateStore> OpenLeaseStateStore(const Root& root, std::chrono::seconds reuse_delay,
                                                     ClockSource clocks) {
  return std::make_unique<LmdbLeaseState>(root, reuse_delay, std::move(clocks));
}

}  // namespace railhead::ipam
