#include "deviceplugin/services/reconcile/address_holders.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cni/state/paths.h"
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

}  // namespace railhead::reconcile
