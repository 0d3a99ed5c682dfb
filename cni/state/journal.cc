#include "cni/state/journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

constexpr std::string_view kSuffix = ".json";
constexpr int kAttempts = 20;
constexpr const char* kHowToRestore =
    "railctl journal show tells what it holds, railctl journal restore ends it";

// Replaces or makes a symbolic link in one step.
Result<void> WriteLink(const std::string& path, const std::string& target) {
  if (::symlink(target.c_str(), path.c_str()) == 0) return {};
  if (errno != EEXIST) return FailSys(errno, "making link " + path);
  const std::string temporary = path + std::string(kTemporarySuffix);
  (void)::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) return FailSys(errno, "making link " + temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return FailSys(errno, "renaming to " + path);
  return {};
}

bool Has(const JournalEntry& entry, const std::string& device) {
  return std::ranges::any_of(
      entry.devices, [&](const AttachedDevice& one) { return one.device == device || one.slot == device; });
}

// Under which its devices are found: the devices first.
std::vector<std::string> NamesOf(const JournalEntry& entry) {
  std::vector<std::string> names;
  names.reserve(2 * entry.devices.size());
  for (const auto& device : entry.devices) names.push_back(device.device);
  for (const auto& device : entry.devices) {
    if (!device.slot.empty()) names.push_back(device.slot);
  }
  return names;
}

std::string LinkTarget(const AttachmentKey& key) {
  return "../attachments/" + key.container_id + "/" + key.network + "@" + key.ifname + std::string(kSuffix);
}

}  // namespace

std::string Journal::DirectoryOf(const std::string& container_id) const {
  return paths::Attachments(root_) + "/" + container_id;
}

std::string Journal::PathOf(const AttachmentKey& key) const {
  // '@' cannot be in a network name, so the first one separates.
  return DirectoryOf(key.container_id) + "/" + key.network + "@" + key.ifname + std::string(kSuffix);
}

Result<std::optional<JournalEntry>> Journal::Read(const std::string& path) const {
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return std::nullopt;
  auto entry = ParseJournalEntry(*text, path);
  if (!entry) {
    if (entry.error().hint.empty()) entry.error().hint = kHowToRestore;
    return Fail(std::move(entry.error()));
  }
  if (entry->boot_id != RH_TRY(BootId(root_))) return std::nullopt;
  return *std::move(entry);
}

Result<std::optional<JournalEntry>> Journal::Find(const AttachmentKey& key) const {
  return Read(PathOf(key));
}

Result<std::optional<JournalEntry>> Journal::FindByDevice(const std::string& device) const {
  auto entry = RH_TRY(Read(paths::Devices(root_) + "/" + device));
  if (!entry) return std::nullopt;
  return Has(*entry, device) ? entry : std::nullopt;
}

Result<bool> Journal::LinksTo(const std::string& device, const AttachmentKey& key) const {
  return RH_TRY(ReadLink(paths::Devices(root_) + "/" + device)) == LinkTarget(key);
}

Result<std::vector<JournalEntry>> Journal::ReadSandbox(const std::string& container_id,
                                                       const std::string& but) const {
  std::vector<JournalEntry> entries;
  const auto names = RH_TRY(ListDirectory(DirectoryOf(container_id)));
  for (const auto& name : names.value_or(std::vector<std::string>{})) {
    if (!name.ends_with(kSuffix)) continue;  // a temporary file
    const std::string path = DirectoryOf(container_id).append("/").append(name);
    if (path == but) continue;
    if (auto entry = RH_TRY(Read(path)); entry) entries.push_back(std::move(*entry));
  }
  return entries;
}

Result<std::vector<JournalEntry>> Journal::OfSandbox(const std::string& container_id) const {
  return ReadSandbox(container_id, "");
}

Result<std::vector<JournalEntry>> Journal::SiblingsOf(const AttachmentKey& key) const {
  return ReadSandbox(key.container_id, PathOf(key));
}

Result<bool> Journal::HasSiblings(const AttachmentKey& key) const {
  const std::string own = key.network + "@" + key.ifname + std::string(kSuffix);
  const auto names = RH_TRY(ListDirectory(DirectoryOf(key.container_id)));
  return names && std::ranges::any_of(*names, [&](const std::string& name) {
           return name.ends_with(kSuffix) && name != own;
         });
}

std::set<std::string> Journal::HeldDevices() const {
  const auto names = ListDirectory(paths::Devices(root_));
  if (!names || !*names) return {};
  return {(*names)->begin(), (*names)->end()};
}

std::set<std::string> Journal::DevicesInReset() const {
  std::set<std::string> devices;
  for (const std::string& device : HeldDevices()) {
    if (LinksTo(device, ResetKey(device)).value_or(false)) devices.insert(device);
  }
  return devices;
}

Result<void> Journal::Write(const JournalEntry& entry) const {
  const std::string path = PathOf(entry.key);
  // What nobody can read again, nobody can restore.
  const std::string text = RH_TRY_WRAP(FormatJournalEntry(entry), "it could not be read again");
  if (text.size() > JsonDocument::kMaxSize) {
    return Fail(
        ErrorCode::kInvalid,
        "the entry of " + entry.key.ToString() + " would be longer than " +
            std::to_string(JsonDocument::kMaxSize) + " bytes",
        "it holds the network configuration once for each call of the IPAM plugin: make that shorter");
  }
  RH_TRY(CheckStateFolder(root_, DirectoryOf(entry.key.container_id)));
  auto written = WriteAtomic(path, text, Sync::kVolatile);
  for (int attempt = 0; !written && written.error().sys_errno == ENOENT && attempt < kAttempts; ++attempt) {
    // Not there yet, or removed in between: by the DEL of a sibling, or by a pass that found it empty.
    RH_TRY(MakeStateFolder(root_, DirectoryOf(entry.key.container_id), 0700));
    written = WriteAtomic(path, text, Sync::kVolatile);
  }
  RH_TRY(written);
  for (const auto& name : NamesOf(entry)) {
    const std::string device = paths::Devices(root_) + "/" + name;
    if (auto current = RH_TRY(ReadLink(device)); current == LinkTarget(entry.key)) continue;
    RH_TRY(MakeStateFolder(root_, paths::Devices(root_), 0700));
    RH_TRY(WriteLink(device, LinkTarget(entry.key)));
  }
  return {};
}

Result<void> Journal::RemoveDeviceLinks(const JournalEntry& entry) const {
  for (const auto& name : NamesOf(entry)) {
    const std::string device = paths::Devices(root_) + "/" + name;
    RH_TRY(RemoveFile(device + std::string(kTemporarySuffix)));
    if (RH_TRY(ReadLink(device)) == LinkTarget(entry.key)) RH_TRY(RemoveFile(device));
  }
  return {};
}

Result<void> Journal::FreeDevices(const JournalEntry& entry) const {
  JournalEntry rest = entry;
  rest.devices.clear();
  RH_TRY(Write(rest));
  return RemoveDeviceLinks(entry);
}

Result<void> Journal::Remove(const JournalEntry& entry) const {
  RH_TRY(CheckStateFolder(root_, DirectoryOf(entry.key.container_id)));
  RH_TRY(RemoveDeviceLinks(entry));
  RH_TRY(RemoveWritten(PathOf(entry.key)));
  (void)RemoveEmptyDirectory(DirectoryOf(entry.key.container_id));  // siblings may still be there
  return {};
}

Result<void> Journal::RemoveHalf(const AttachmentKey& key) const {
  RH_TRY(CheckStateFolder(root_, DirectoryOf(key.container_id)));
  RH_TRY(RemoveFile(PathOf(key) + std::string(kTemporarySuffix)));
  (void)RemoveEmptyDirectory(DirectoryOf(key.container_id));
  return {};
}

// Journal as a whole: all entries, those that cannot be read, and what killed writers left.

namespace {

constexpr std::string_view kEntrySuffix = ".json";

std::set<std::string> DevicesOfAll(const JournalScan& scan) {
  std::set<std::string> devices;
  for (const auto* entries : {&scan.entries, &scan.earlier}) {
    for (const auto& entry : *entries) {
      for (const auto& device : entry.devices) {
        devices.insert(device.device);
        devices.insert(device.KubeletId());
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
  return names &&
         std::ranges::any_of(*names, [](const std::string& name) { return name.ends_with(kEntrySuffix); });
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
