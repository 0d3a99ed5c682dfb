#include "cni/state/journal_cache.h"

#include <utility>

#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/node.h"

namespace railhead {

std::optional<JournalCache::Identity> JournalCache::IdentityOf(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return Identity{status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size};
}

Result<void> JournalCache::Look(const std::string& path, const std::string& boot_id, Files* now, View* view) {
  // Before the content: what is replaced in between is read again next time.
  const auto identity = IdentityOf(path);
  if (!identity) return {};
  const auto known = known_.find(path);
  if (known != known_.end() && known->second.identity == *identity) {
    now->insert(known_.extract(known));
    return {};
  }
  const auto text = ReadFile(path);
  if (text && !*text) return {};
  auto entry = text ? ParseJournalEntry(**text, path) : Result<JournalEntry>(Fail(text.error()));
  if (!entry) {
    view->unreadable.push_back(RH_TRY(journal_.Describe(path, std::move(entry.error()))));
    return {};
  }
  if (entry->boot_id != boot_id || entry->phase != Phase::kDone) return {};
  entry->ipam_calls = {};
  entry->cni_path = {};
  now->insert_or_assign(path, Known{*identity, std::make_shared<const JournalEntry>(*std::move(entry))});
  return {};
}

Result<JournalCache::View> JournalCache::Read() {
  View view;
  Files now;
  const std::string attachments = paths::Attachments(root_);
  const auto containers = RH_TRY(ListDirectory(attachments)).value_or(std::vector<std::string>{});
  const std::string boot_id = containers.empty() ? std::string() : RH_TRY(BootId(root_));
  for (const std::string& container : containers) {
    std::string directory = attachments;
    directory.append("/").append(container).append("/");
    const auto names = RH_TRY(ListDirectory(directory));
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      if (name.ends_with(".json")) RH_TRY(Look(directory + name, boot_id, &now, &view));
    }
  }
  known_ = std::move(now);
  for (const auto& [path, known] : known_) view.entries.push_back(known.entry);
  return view;
}

}  // namespace railhead
