#include "cni/state/journal_cache.h"

#include <utility>

#include "cni/state/journal.h"
#include "netns/base/node.h"

namespace railhead {

std::optional<JournalCache::Identity> JournalCache::IdentityOf(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return Identity{status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size};
}

Result<void> JournalCache::Look(const std::string& path, const std::string& boot_id, Files* now, View* view) {
  // Before the content: a file that is replaced in between is read again by the next call.
  const auto identity = IdentityOf(path);
  if (!identity) return {};
  const auto known = known_.find(path);
  if (known != known_.end() && known->second.identity == *identity) {
    now->insert(known_.extract(known));
    return {};
  }
  auto read = journal_.ReadAt(path);
  if (!read) {
    view->unreadable.push_back(RH_TRY(journal_.Describe(path, std::move(read.error()))));
    return {};
  }
  std::optional<JournalEntry>& entry = *read;
  if (!entry || entry->boot_id != boot_id || entry->phase != Phase::kDone) return {};
  entry->ipam_calls = {};
  entry->cni_path = {};
  now->insert_or_assign(path, Known{*identity, std::make_shared<const JournalEntry>(*std::move(entry))});
  return {};
}

Result<JournalCache::View> JournalCache::Read() {
  View view;
  Files now;
  const auto paths = RH_TRY(journal_.Paths());
  const std::string boot_id = paths.empty() ? std::string() : RH_TRY(BootId(root_));
  for (const std::string& path : paths) RH_TRY(Look(path, boot_id, &now, &view));
  known_ = std::move(now);
  for (const auto& [path, known] : known_) view.entries.push_back(known.entry);
  return view;
}

}  // namespace railhead
