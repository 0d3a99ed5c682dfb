// Journal as a whole: all entries, those that cannot be read, and what killed writers left.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cni/state/journal.h"
#include "cni/state/journal_json.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"

namespace railhead {
namespace {

constexpr std::string_view kEntrySuffix = ".json";

bool Has(const JournalEntry& entry, const std::string& device) {
  return std::any_of(entry.links.begin(), entry.links.end(),
                     [&](const AttachedLink& link) { return link.device == device || link.slot == device; });
}

std::set<std::string> DevicesOfAll(const JournalScan& scan) {
  std::set<std::string> devices;
  for (const auto* entries : {&scan.entries, &scan.earlier}) {
    for (const auto& entry : *entries) {
      for (const auto& link : entry.links) {
        devices.insert(link.device);
        devices.insert(link.KubeletId());
      }
    }
  }
  for (const auto& entry : scan.unreadable) devices.insert(entry.devices.begin(), entry.devices.end());
  return devices;
}

}  // namespace

Result<void> Journal::ScanSandbox(const std::string& container_id, const std::string& boot_id,
                                  JournalScan& scan) const {
  const std::string directory = DirectoryOf(container_id);
  const auto names = RH_TRY(ListDirectory(directory));
  if (!names) return {};
  for (const auto& name : *names) {
    std::string path = directory;
    path.append("/").append(name);
    if (!name.ends_with(kEntrySuffix)) {
      scan.remains.push_back(path);
      continue;
    }
    const auto text = RH_TRY(ReadFile(path));
    if (!text) continue;
    auto entry = ParseJournalEntry(*text, path);
    if (!entry) {
      scan.unreadable.push_back(RH_TRY(Describe(path, std::move(entry.error()))));
    } else {
      (entry->boot_id == boot_id ? scan.entries : scan.earlier).push_back(std::move(*entry));
    }
  }
  if (names->empty()) scan.remains.push_back(directory);
  return {};
}

Result<UnreadableEntry> Journal::Describe(const std::string& path, Error error) const {
  UnreadableEntry entry;
  entry.path = path;
  entry.error = std::move(error);
  const std::string relative = path.substr(paths::Attachments(root_).size() + 1);
  const auto slash = relative.find('/');
  const auto at = relative.find('@', slash);
  if (slash != std::string::npos && at != std::string::npos) {
    entry.key.container_id = relative.substr(0, slash);
    entry.key.network = relative.substr(slash + 1, at - slash - 1);
    entry.key.ifname = relative.substr(at + 1, relative.size() - at - 1 - kEntrySuffix.size());
  }
  const auto names = RH_TRY(ListDirectory(paths::Devices(root_)));
  for (const auto& name : names.value_or(std::vector<std::string>{})) {
    const auto target = RH_TRY(ReadLink(paths::Devices(root_) + "/" + name));
    if (target && target->ends_with("/" + relative)) entry.devices.insert(name);
  }
  return entry;
}

Result<void> Journal::RemoveUnreadable(const UnreadableEntry& entry) const {
  const std::string directory = entry.path.substr(0, entry.path.rfind('/'));
  RH_TRY(CheckStateFolder(root_, directory));
  for (const auto& name : entry.devices) RH_TRY(RemoveFile(paths::Devices(root_) + "/" + name));
  RH_TRY(RemoveWritten(entry.path));
  (void)RemoveEmptyDirectory(directory);
  return {};
}

Result<JournalScan> Journal::Scan() const {
  JournalScan scan;
  const std::string boot_id = RH_TRY(BootId(root_));
  // Links first: the entry of one that is listed was there before it.
  const auto linked = RH_TRY(ListDirectory(paths::Devices(root_)));
  const auto containers = RH_TRY(ListDirectory(paths::Attachments(root_)));
  for (const auto& container : containers.value_or(std::vector<std::string>{})) {
    RH_TRY(ScanSandbox(container, boot_id, scan));
  }
  const auto owned = DevicesOfAll(scan);
  for (const auto& name : linked.value_or(std::vector<std::string>{})) {
    if (name.ends_with(kTemporarySuffix)) {
      scan.loose.insert(name.substr(0, name.size() - kTemporarySuffix.size()));
    } else if (!owned.contains(name)) {
      scan.loose.insert(name);
    }
  }
  return scan;
}

Result<std::optional<JournalEntry>> Journal::FindOfAnyBoot(const AttachmentKey& key) const {
  const std::string path = PathOf(key);
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return std::nullopt;
  return RH_TRY(ParseJournalEntry(*text, path));
}

Result<bool> Journal::HoldsDevice(const std::string& device) const {
  const std::string path = paths::Devices(root_) + "/" + device;
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return false;
  const auto entry = ParseJournalEntry(*text, path);
  return !entry || Has(*entry, device);
}

Result<bool> Journal::HoldsSandbox(const std::string& container_id) const {
  const auto names = RH_TRY(ListDirectory(DirectoryOf(container_id)));
  return names && std::any_of(names->begin(), names->end(),
                              [](const std::string& name) { return name.ends_with(kEntrySuffix); });
}

Result<bool> Journal::RemoveLoose(const std::string& device) const {
  const std::string path = paths::Devices(root_) + "/" + device;
  const bool half = RH_TRY(RemoveFile(path + std::string(kTemporarySuffix)));
  if (RH_TRY(HoldsDevice(device))) return half;
  return RH_TRY(RemoveFile(path)) || half;
}

// A writer that has just made the directory, or found its temporary file gone, makes it again.
Result<bool> Journal::RemoveRemains(const std::string& path) const {
  const std::string directory = path.substr(0, path.rfind('/'));
  RH_TRY(CheckStateFolder(root_, directory));
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) return RemoveEmptyDirectory(path);
  if (!RH_TRY(RemoveAbandoned(path))) return false;
  (void)RemoveEmptyDirectory(directory);  // others may be there, or have come meanwhile
  return true;
}

}  // namespace railhead
