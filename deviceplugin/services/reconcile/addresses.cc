#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/reconcile/address_holders.h"
#include "deviceplugin/services/reconcile/reconcile_pass.h"
#include "ipam/store/held_addresses.h"
#include "ipam/store/store.h"

// Addresses of railhead-ipam whose container is gone. In doubt, nothing is released.

namespace railhead::reconcile {
namespace {

constexpr const char* kAddress = "address";

std::string TextOf(const ipam::AddressRecord& record) {
  return record.address.ToString() + " of " + record.owner.container + "/" + record.owner.network + "@" +
         record.owner.ifname;
}

class Orphans {
 public:
  Orphans(const ReconcilePass& pass, ipam::StoreMoment now) : pass_(pass), now_(std::move(now)) {}

  [[nodiscard]] bool Includes(const ipam::AddressRecord& record, const AddressHolders& holders) const {
    return record.boot_id == now_.clocks.boot_id && now_.AgeOf(record) >= pass_.options.address_age &&
           !holders.IsRemembered(record) && holders.Attachment(record) == nullptr;
  }

 private:
  const ReconcilePass& pass_;
  ipam::StoreMoment now_;
};

// Decides again with the store locked. A later request gets another address, and an earlier one has written
// its journal entry already.
Result<std::vector<ipam::AddressRecord>> Release(const ReconcilePass& pass) {
  auto store = RH_TRY(ipam::AddressStore::OpenExisting(pass.root));
  if (!store) return std::vector<ipam::AddressRecord>{};
  const auto holders = RH_TRY(AddressHolders::Read(pass.root));
  if (!holders.complete()) return std::vector<ipam::AddressRecord>{};
  const Orphans orphans(pass, RH_TRY(store->Now()));
  return store->ReleaseWhere(
      [&](const ipam::AddressRecord& record) { return orphans.Includes(record, holders); });
}

Result<std::vector<ipam::AddressRecord>> ReleaseOrphans(const ReconcilePass& pass, const JournalScan& scan) {
  const auto held = RH_TRY(ipam::ListHeld(pass.root));
  if (held.records.empty()) return std::vector<ipam::AddressRecord>{};
  const auto holders = RH_TRY(AddressHolders::Read(pass.root, scan));
  if (!holders.complete()) return std::vector<ipam::AddressRecord>{};
  const Orphans orphans(pass, held.now);
  const bool any = std::ranges::any_of(
      held.records, [&](const ipam::AddressRecord& record) { return orphans.Includes(record, holders); });
  return any ? Release(pass) : std::vector<ipam::AddressRecord>{};
}

void Report(ReconcilePass& pass, const char* reason,
            const Result<std::vector<ipam::AddressRecord>>& released) {
  if (!released) return pass.Add(kAddress, "", reason, Fail(released.error()));
  for (const auto& record : *released) pass.Add(kAddress, TextOf(record), reason, true);
}

}  // namespace

void ReconcileAddresses(ReconcilePass& pass, const JournalScan& scan, bool& earlier_boots) {
  if (pass.Stopped()) return;
  if (earlier_boots) {
    const auto released = ipam::ReleaseEarlierBoots(pass.root);
    earlier_boots = !released;
    Report(pass, "is of an earlier boot", released);
  }
  Report(pass, "no attachment has it, and no runtime remembers its container", ReleaseOrphans(pass, scan));
}

}  // namespace railhead::reconcile
