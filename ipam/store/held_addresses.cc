#include "ipam/store/held_addresses.h"

#include <algorithm>

#include "ipam/store/store.h"

namespace railhead::ipam {
Result<HeldAddresses> ListHeld(const Root& root) {
  HeldAddresses held;
  const auto store = RH_TRY(AddressStore::OpenExisting(root));
  if (!store) return held;
  held.now = RH_TRY(store->Now());
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
  return store->ReleaseEarlierBoots();
}

}  // namespace railhead::ipam
