#include "ipam/reclaim.h"

#include <algorithm>

#include "ipam/store.h"

namespace railhead {

Result<HeldAddresses> ListHeld(const Root& root) {
  HeldAddresses held;
  held.boot_id = RH_TRY(ReadClocks(root)).boot_id;
  const auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return held;
  held.records = RH_TRY(store->List());
  held.records.erase(
      std::remove_if(held.records.begin(), held.records.end(),
                     [](const AddressRecord& record) { return record.state != AddressState::kHeld; }),
      held.records.end());
  return held;
}

Result<std::vector<AddressRecord>> ReleaseEarlierBoots(const Root& root) {
  auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return std::vector<AddressRecord>{};
  const ClockReading now = RH_TRY(ReadClocks(root));
  return store->ReleaseWhere([&](const AddressRecord& held) { return held.boot_id != now.boot_id; }, now);
}

Result<std::size_t> ReleaseOwner(const Root& root, const AddressOwner& owner) {
  auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return 0;
  const ClockReading now = RH_TRY(ReadClocks(root));
  return store->Release(owner, now);
}

}  // namespace railhead
