#include "tests/system/crash/held_addresses.h"

#include "ipam/store/store.h"

namespace railhead::crash {

Result<std::vector<std::string>> HeldAddresses(const Root& root) {
  std::vector<std::string> lines;
  const auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  if (!store) return lines;
  for (const auto& record : RH_TRY(store->List())) {
    if (record.state != ipam::AddressState::kHeld) continue;
    lines.push_back("address " + record.address.ToString() + " held by " + record.owner.container + " " +
                    record.owner.network + "@" + record.owner.ifname);
  }
  for (const auto& contradiction : RH_TRY(store->Verify())) lines.push_back("store: " + contradiction);
  return lines;
}

}  // namespace railhead::crash
