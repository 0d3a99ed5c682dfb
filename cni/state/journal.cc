#include "cni/state/journal.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/fnv.h"
#include "netns/base/node.h"
#include "netns/base/root.h"

namespace railhead {
namespace {

constexpr std::string_view kSuffix = ".json";
constexpr const char* kHowToRestore =
    "railctl journal show prints what it holds, railctl journal restore releases it";

bool Has(const JournalEntry& entry, const std::string& device) {
  return std::ranges::any_of(
      entry.devices, [&](const AttachedDevice& one) { return one.device == device || one.slot == device; });
}

// A file name has at most 255 bytes, so long network names are cut, with a hash that keeps them apart. If two
// networks of one interface have the same hash, the second ADD is refused like a repeated one. No network
// name has a '+'. A cut name stays as it is: the key that KeyOf() reads from a path leads back to the path.
std::string FileNameOf(const std::string& network) {
  constexpr std::size_t kLongest = 128;
  constexpr std::size_t kKept = 100;
  if (network.size() <= kLongest) return network;
  return network.substr(0, kKept) + "+" + std::to_string(Fnv1a64(network));
}

// nullopt when it is not the relative path of an entry.
std::optional<AttachmentKey> KeyOf(const std::string& relative) {
  const auto slash = relative.find('/');
  const auto at = relative.find('@', slash);
  if (at == std::string::npos || !relative.ends_with(kSuffix) ||
      relative.find('/', slash + 1) != std::string::npos)
    return std::nullopt;
  return AttachmentKey{relative.substr(slash + 1, at - slash - 1), relative.substr(0, slash),
                       relative.substr(at + 1, relative.size() - at - 1 - kSuffix.size())};
}

}  // namespace

std::set<std::string> DevicesOf(const JournalEntry& entry) {
  std::set<std::string> devices;
  for (const AttachedDevice& device : entry.devices) {
    devices.insert(device.device);
    devices.insert(device.KubeletId());
  }
  return devices;
}

std::string Journal::RelativePathOf(const AttachmentKey& key) {
  return key.container_id + "/" + FileNameOf(key.network) + "@" + key.ifname + std::string(kSuffix);
}

std::vector<std::string> Journal::NamesOf(const JournalEntry& entry) {
  std::vector<std::string> names;
  names.reserve(2 * entry.devices.size());
  for (const auto& device : entry.devices) names.push_back(device.device);
  for (const auto& device : entry.devices) {
    if (!device.slot.empty()) names.push_back(device.slot);
  }
  return names;
}

std::string Journal::DirectoryOf(const std::string& container_id) const {
  return paths::Attachments(root_) + "/" + container_id;
}

std::string Journal::PathOf(const AttachmentKey& key) const {
  return paths::Attachments(root_) + "/" + RelativePathOf(key);
}

Result<std::string> Journal::HolderOf(const std::string& device) const {
  const auto text = RH_TRY(ReadFile(paths::Lock(root_, device))).value_or("");
  std::string line = text.substr(0, text.find('\n'));
  return KeyOf(line) ? line : std::string();
}

Result<std::optional<JournalEntry>> Journal::ReadAt(const std::string& path) const {
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return std::nullopt;
  auto entry = ParseJournalEntry(*text, path);
  if (!entry && entry.error().hint.empty()) entry.error().hint = kHowToRestore;
  if (!entry) return Fail(std::move(entry.error()));
  return *std::move(entry);
}

Result<std::optional<JournalEntry>> Journal::Read(const std::string& path) const {
  auto entry = RH_TRY(ReadAt(path));
  if (entry && entry->boot_id != RH_TRY(BootId(root_))) return std::nullopt;
  return entry;
}

Result<std::optional<JournalEntry>> Journal::Find(const AttachmentKey& key) const {
  return Read(PathOf(key));
}

Result<std::optional<JournalEntry>> Journal::FindByDevice(const std::string& device) const {
  const std::string holder = RH_TRY(HolderOf(device));
  if (holder.empty()) return std::nullopt;
  auto entry = RH_TRY(Read(paths::Attachments(root_) + "/" + holder));
  if (!entry) return std::nullopt;
  return Has(*entry, device) ? entry : std::nullopt;
}

Result<bool> Journal::IsHeldBy(const std::string& device, const AttachmentKey& key) const {
  return RH_TRY(HolderOf(device)) == RelativePathOf(key);
}

Result<std::vector<std::string>> Journal::PathsOf(const std::string& container_id) const {
  const std::string directory = DirectoryOf(container_id);
  auto names = RH_TRY(ListDirectory(directory)).value_or(std::vector<std::string>{});
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSuffix); });  // temporary files
  for (std::string& name : names) name.insert(0, directory + "/");
  return names;
}

Result<std::vector<std::string>> Journal::Paths() const {
  std::vector<std::string> paths;
  const auto containers = RH_TRY(ListDirectory(paths::Attachments(root_)));
  for (const std::string& container : containers.value_or(std::vector<std::string>{})) {
    for (std::string& path : RH_TRY(PathsOf(container))) paths.push_back(std::move(path));
  }
  return paths;
}

Result<std::vector<JournalEntry>> Journal::ReadSandbox(const std::string& container_id,
                                                       const std::string& but) const {
  std::vector<JournalEntry> entries;
  for (const std::string& path : RH_TRY(PathsOf(container_id))) {
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
  const auto paths = RH_TRY(PathsOf(key.container_id));
  return std::ranges::any_of(paths, [&](const std::string& path) { return path != PathOf(key); });
}

std::set<std::string> Journal::HeldDevices() const {
  std::set<std::string> devices;
  const auto names = ListDirectory(paths::Locks(root_));
  if (!names || !*names) return devices;
  for (const std::string& name : **names) {
    struct stat status {};
    const std::string device = name.substr(0, name.size() - std::min(name.size(), paths::kLockSuffix.size()));
    if (::lstat(paths::Lock(root_, device).c_str(), &status) == 0 && status.st_size > 0)
      devices.insert(device);
  }
  return devices;
}

std::set<std::string> Journal::DevicesInReset() const {
  std::set<std::string> devices = HeldDevices();
  std::erase_if(devices, [&](const std::string& device) {
    return !IsHeldBy(device, ResetKey(device)).value_or(false);
  });
  return devices;
}

// Journal as a whole: all entries, and those that cannot be read.

Result<UnreadableEntry> Journal::Describe(const std::string& path, Error error) const {
  UnreadableEntry entry;
  entry.path = path;
  entry.error = std::move(error);
  const std::string relative = path.substr(paths::Attachments(root_).size() + 1);
  entry.key = KeyOf(relative).value_or(AttachmentKey{});
  for (const auto& name : HeldDevices()) {
    if (RH_TRY(HolderOf(name)) == relative) entry.devices.insert(name);
  }
  return entry;
}

Result<JournalScan> Journal::Scan() const {
  JournalScan scan;
  const std::string boot_id = RH_TRY(BootId(root_));
  // Lock files first: an entry is written before its lock files.
  scan.orphaned = HeldDevices();
  for (const std::string& path : RH_TRY(Paths())) {
    auto entry = ReadAt(path);
    if (!entry) {
      scan.unreadable.push_back(RH_TRY(Describe(path, std::move(entry.error()))));
    } else if (*entry) {
      ((*entry)->boot_id == boot_id ? scan.entries : scan.earlier).push_back(**std::move(entry));
    }
  }
  for (const auto* entries : {&scan.entries, &scan.earlier}) {
    for (const JournalEntry& entry : *entries) {
      for (const std::string& name : NamesOf(entry)) scan.orphaned.erase(name);
    }
  }
  for (const UnreadableEntry& entry : scan.unreadable) {
    for (const std::string& name : entry.devices) scan.orphaned.erase(name);
  }
  return scan;
}

Result<std::optional<JournalEntry>> Journal::FindOfAnyBoot(const AttachmentKey& key) const {
  return ReadAt(PathOf(key));
}

Result<bool> Journal::HoldsDevice(const std::string& device) const {
  const std::string holder = RH_TRY(HolderOf(device));
  if (holder.empty()) return false;
  const auto entry = ReadAt(paths::Attachments(root_) + "/" + holder);
  return !entry || (*entry && Has(**entry, device));
}

Result<bool> Journal::HoldsSandbox(const std::string& container_id) const {
  return !RH_TRY(PathsOf(container_id)).empty();
}

}  // namespace railhead
