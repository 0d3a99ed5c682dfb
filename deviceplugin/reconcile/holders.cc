#include "deviceplugin/reconcile/holders.h"

#include <algorithm>

#include "cni/state/paths.h"
#include "netns/base/files.h"

namespace railhead {

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
  // A damaged entry may be the owner.
  holders.complete_ = any_cache && scan.damaged.empty();
  return holders;
}

const JournalEntry* AddressHolders::Attachment(const AddressRecord& record) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const JournalEntry& one) {
    return one.key.network == record.owner.network && one.key.container_id == record.owner.container;
  });
  return entry == entries_.end() ? nullptr : &*entry;
}

bool AddressHolders::IsRemembered(const AddressRecord& record) const {
  return std::any_of(results_.begin(), results_.end(), [&](const std::string& name) {
    return name.find(record.owner.container) != std::string::npos;
  });
}

}  // namespace railhead
