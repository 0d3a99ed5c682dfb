// Addresses of railhead-ipam that nobody can have any more.
//
// Below `railhead` the journal says who has which; below other main plugins only what
// libcni keeps of each attachment (its cache of results) does. Without such a cache
// there is no way to tell, and nothing is released.
#include <algorithm>
#include <ctime>
#include <vector>

#include "cni/state/paths.h"
#include "deviceplugin/reconcile/pass.h"
#include "ipam/reclaim.h"
#include "ipam/store.h"
#include "netns/base/files.h"

namespace railhead {
namespace {

constexpr const char* kWhat = "address";

std::string Shown(const AddressRecord& record) {
  return record.address.ToString() + " of " + record.owner.container + "/" + record.owner.network + "@" +
         record.owner.ifname;
}

// Names of the files in which runtimes keep results ("NETWORK-CONTAINER-IFNAME", Multus:
// "CONTAINER"); nullopt: no runtime keeps any.
Result<std::optional<std::vector<std::string>>> CachedResults(const Root& root) {
  std::optional<std::vector<std::string>> all;
  for (const auto& directory : paths::CniCaches(root)) {
    const auto names = RH_TRY(ListDirectory(directory));
    if (!names) continue;
    if (!all) all.emplace();
    all->insert(all->end(), names->begin(), names->end());
  }
  return all;
}

bool IsCached(const std::vector<std::string>& results, const AddressRecord& record) {
  return std::any_of(results.begin(), results.end(), [&](const std::string& name) {
    return name.find(record.owner.container) != std::string::npos;
  });
}

bool IsAttached(const std::vector<JournalEntry>& entries, const AddressRecord& record) {
  return std::any_of(entries.begin(), entries.end(), [&](const JournalEntry& entry) {
    return entry.key.network == record.owner.network && entry.key.container_id == record.owner.container;
  });
}

class Orphans {
 public:
  Orphans(const ReconcilePass& pass, std::string boot_id, std::vector<std::string> results)
      : pass_(pass), boot_id_(std::move(boot_id)), results_(std::move(results)) {}

  [[nodiscard]] bool Includes(const AddressRecord& record, const std::vector<JournalEntry>& entries) const {
    return record.boot_id == boot_id_ &&
           std::time(nullptr) - record.wall_seconds >= pass_.options.address_age.count() &&
           !IsCached(results_, record) && !IsAttached(entries, record);
  }

 private:
  const ReconcilePass& pass_;
  std::string boot_id_;
  std::vector<std::string> results_;
};

// Decided again with the store locked: who asks for the address after that gets another,
// and who asked before has written its journal entry before it.
Result<std::vector<AddressRecord>> Release(const ReconcilePass& pass, const Orphans& orphans) {
  auto store = RH_TRY(AddressStore::OpenExisting(pass.root));
  if (!store) return std::vector<AddressRecord>{};
  const JournalScan scan = RH_TRY(pass.journal.Scan());
  if (!scan.damaged.empty()) return std::vector<AddressRecord>{};
  const ClockReading clocks = RH_TRY(ReadClocks(pass.root));
  return store->ReleaseWhere(
      [&](const AddressRecord& record) { return orphans.Includes(record, scan.entries); }, clocks);
}

Result<std::vector<AddressRecord>> ReleaseOrphans(const ReconcilePass& pass, const JournalScan& scan) {
  // A damaged entry may be the owner.
  if (!scan.damaged.empty()) return std::vector<AddressRecord>{};
  const auto held = RH_TRY(ListHeld(pass.root));
  if (held.records.empty()) return std::vector<AddressRecord>{};
  auto results = RH_TRY(CachedResults(pass.root));
  if (!results) return std::vector<AddressRecord>{};
  const Orphans orphans(pass, held.boot_id, std::move(*results));
  const bool any = std::any_of(held.records.begin(), held.records.end(), [&](const AddressRecord& record) {
    return orphans.Includes(record, scan.entries);
  });
  return any ? Release(pass, orphans) : std::vector<AddressRecord>{};
}

void Report(ReconcilePass& pass, const char* reason, const Result<std::vector<AddressRecord>>& released) {
  if (!released) return pass.Add(kWhat, "", reason, Fail(released.error()));
  for (const auto& record : *released) pass.Add(kWhat, Shown(record), reason, true);
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
