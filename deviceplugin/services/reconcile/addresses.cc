// Addresses of railhead-ipam that nobody can have any more (holders.h). Where there is no way to
// tell, nothing is released.
#include <algorithm>
#include <vector>

#include "deviceplugin/services/reconcile/address_owners.h"
#include "deviceplugin/services/reconcile/pass.h"
#include "ipam/store/release_stale.h"
#include "ipam/store/store.h"

namespace railhead {
namespace {

constexpr const char* kAddress = "address";

std::string Shown(const AddressRecord& record) {
  return record.address.ToString() + " of " + record.owner.container + "/" + record.owner.network + "@" +
         record.owner.ifname;
}

class Orphans {
 public:
  Orphans(const ReconcilePass& pass, StoreMoment now) : pass_(pass), now_(std::move(now)) {}

  [[nodiscard]] bool Includes(const AddressRecord& record, const AddressHolders& holders) const {
    return record.boot_id == now_.clocks.boot_id && now_.AgeOf(record) >= pass_.options.address_age &&
           !holders.IsRemembered(record) && holders.Attachment(record) == nullptr;
  }

 private:
  const ReconcilePass& pass_;
  StoreMoment now_;
};

// Decided again with the store locked: who asks for the address after that gets another,
// and who asked before has written its journal entry before it.
Result<std::vector<AddressRecord>> Release(const ReconcilePass& pass) {
  auto store = RH_TRY(AddressStore::OpenExisting(pass.root));
  if (!store) return std::vector<AddressRecord>{};
  const auto holders = RH_TRY(AddressHolders::Read(pass.root));
  if (!holders.complete()) return std::vector<AddressRecord>{};
  const Orphans orphans(pass, RH_TRY(store->Now()));
  return store->ReleaseWhere([&](const AddressRecord& record) { return orphans.Includes(record, holders); });
}

Result<std::vector<AddressRecord>> ReleaseOrphans(const ReconcilePass& pass, const JournalScan& scan) {
  const auto held = RH_TRY(ListHeld(pass.root));
  if (held.records.empty()) return std::vector<AddressRecord>{};
  const auto holders = RH_TRY(AddressHolders::Read(pass.root, scan));
  if (!holders.complete()) return std::vector<AddressRecord>{};
  const Orphans orphans(pass, held.now);
  const bool any = std::any_of(held.records.begin(), held.records.end(), [&](const AddressRecord& record) {
    return orphans.Includes(record, holders);
  });
  return any ? Release(pass) : std::vector<AddressRecord>{};
}

void Report(ReconcilePass& pass, const char* reason, const Result<std::vector<AddressRecord>>& released) {
  if (!released) return pass.Add(kAddress, "", reason, Fail(released.error()));
  for (const auto& record : *released) pass.Add(kAddress, Shown(record), reason, true);
}

}  // namespace

void ReconcileAddresses(ReconcilePass& pass, const JournalScan& scan, bool& earlier_boots) {
  if (pass.stopped) return;
  if (earlier_boots) {
    const auto released = ReleaseEarlierBoots(pass.root);
    earlier_boots = !released;
    Report(pass, "is of an earlier boot", released);
  }
  Report(pass, "no attachment has it, and no runtime remembers its container", ReleaseOrphans(pass, scan));
}

}  // namespace railhead
