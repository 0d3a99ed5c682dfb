#include "ipam/store/former_blocks.h"

#include <set>
#include <string_view>

#include "ipam/store/lmdb.h"

namespace railhead::ipam {
namespace {

constexpr std::string_view kBlockTable = "B";

// false: there is nothing to write.
Result<bool> AddPools(const LmdbTxn& txn, std::set<std::string>* pools) {
  const auto entries = RH_TRY(txn.Under(kBlockTable));
  for (const KeyValue& entry : entries) {
    const auto end = entry.key.find('\0');
    if (end != std::string::npos) pools->insert(entry.key.substr(1, end - 1));
  }
  return false;
}

}  // namespace

Result<std::vector<std::string>> FormerBlocksInUse(AddressStore& store, std::chrono::seconds reuse_delay) {
  std::set<std::string> leased;
  RH_TRY(store.Transact([&](LmdbTxn& txn, const ClockReading&) { return AddPools(txn, &leased); }));
  if (leased.empty()) return std::vector<std::string>();
  std::set<std::string> used;
  const StoreMoment now = RH_TRY(store.Now());
  const auto records = RH_TRY(store.List());
  for (const AddressRecord& record : records) {
    if (!leased.contains(record.pool)) continue;
    // A released address stays in the list until an allocation from its pool.
    const bool cools_down = record.state == AddressState::kCoolingDown && now.AgeOf(record) < reuse_delay;
    if (record.state == AddressState::kHeld || cools_down) used.insert(record.pool);
  }
  return std::vector<std::string>(used.begin(), used.end());
}

}  // namespace railhead::ipam
