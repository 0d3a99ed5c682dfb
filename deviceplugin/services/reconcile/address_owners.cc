#include "deviceplugin/services/reconcile/address_owners.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cni/state/paths.h"
#include "deviceplugin/services/reconcile/reconcile_pass.h"
#include "ipam/store/held_addresses.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"

namespace railhead::reconcile {

Result<AddressHolders> AddressHolders::Read(const Root& root) {
  return Read(root, RH_TRY(Journal(root).Scan()));
}

Result<AddressHolders> AddressHolders::Read(const Root& root, const JournalScan& scan) {
  AddressHolders holders;
  holders.entries_ = scan.entries;
  bool any_cache = false;
  for (const auto& directory : paths::CniCaches(root)) {
    const auto names = RH_TRY(ListDirectory(directory));
    if (!names) continue;
    any_cache = true;
    holders.results_.insert(holders.results_.end(), names->begin(), names->end());
  }
  for (const UnreadableEntry& entry : scan.unreadable) holders.unreadable_.push_back(entry.key.container_id);
  holders.complete_ = any_cache;
  return holders;
}

const JournalEntry* AddressHolders::Attachment(const ipam::AddressRecord& record) const {
  const auto entry = std::ranges::find_if(entries_, [&](const JournalEntry& one) {
    return one.key.network == record.owner.network && one.key.container_id == record.owner.container;
  });
  return entry == entries_.end() ? nullptr : &*entry;
}

bool AddressHolders::IsRemembered(const ipam::AddressRecord& record) const {
  if (Contains(unreadable_, record.owner.container)) return true;
  return std::ranges::any_of(results_, [&](const std::string& name) {
    return name.find(record.owner.container) != std::string::npos;
  });
}

Result<AddressFacts> ReadAddressFacts(const Root& root, std::uint64_t after) {
  AddressFacts facts;
  const auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  if (!store) return facts;
  std::map<std::string, PoolFacts> pools;
  const auto counters = RH_TRY(store->Counters());
  for (const auto& [pool, counted] : counters) pools[pool].counters = counted;
  const auto records = RH_TRY(store->List());
  for (const ipam::AddressRecord& record : records) {
    PoolFacts& pool = pools[record.pool];
    ++(record.state == ipam::AddressState::kHeld          ? pool.held
       : record.state == ipam::AddressState::kCoolingDown ? pool.cooling_down
                                                          : pool.quarantined);
  }
  for (auto& [name, pool] : pools) {
    pool.pool = name;
    facts.pools.push_back(std::move(pool));
  }
  facts.events = RH_TRY(store->Events(after));
  return facts;
}

std::string Sentence(const ipam::AddressEvent& event) {
  const std::string address = event.address ? event.address->ToString() : "an address";
  const std::string of = event.pool.empty() ? std::string() : " of " + event.pool;
  const std::string seconds = std::to_string(event.ms / 1000) + " s";
  switch (event.kind) {
    case ipam::AddressEventKind::kEarlyReuse:
      return address + of + " was reused only " + seconds +
             " after its release, because no other address was free: widen the range, or peers may send to "
             "its "
             "former owner";
    case ipam::AddressEventKind::kExhausted:
      return "no address was free" + of + ", " + std::to_string(event.count) +
             " times: widen the range or delete pods";
    case ipam::AddressEventKind::kQuarantined:
      return address + of + " is in use by another machine and in quarantine for " + seconds +
             ": find that machine, or exclude the address";
    case ipam::AddressEventKind::kNewBoot:
      return std::to_string(event.count) + " addresses of earlier boots were released";
  }
  return std::string(NameOf(event.kind));
}

// Addresses of railhead-ipam whose container is gone. In doubt, nothing is released.

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
