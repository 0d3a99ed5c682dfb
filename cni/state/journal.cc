#include "cni/state/journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cni/skel/json_reader.h"
#include "cni/state/journal_json.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"

namespace railhead {
namespace {

constexpr std::string_view kSuffix = ".json";

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

// Under which its devices are found: the devices first.
std::vector<std::string> NamesOf(const JournalEntry& entry) {
  std::vector<std::string> names;
  names.reserve(2 * entry.links.size());
  for (const auto& link : entry.links) names.push_back(link.device);
  for (const auto& link : entry.links) {
    if (!link.slot.empty()) names.push_back(link.slot);
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
  JournalEntry entry = RH_TRY(ParseJournalEntry(*text, path));
  if (entry.boot_id != RH_TRY(BootId(root_))) return std::nullopt;
  return entry;
}

Result<std::optional<JournalEntry>> Journal::Find(const AttachmentKey& key) const {
  return Read(PathOf(key));
}

Result<std::optional<JournalEntry>> Journal::FindByDevice(const std::string& device) const {
  auto entry = RH_TRY(Read(paths::Devices(root_) + "/" + device));
  if (!entry) return std::nullopt;
  for (const auto& link : entry->links) {
    if (link.device == device || link.slot == device) return entry;
  }
  return std::nullopt;
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

std::set<std::string> Journal::HeldDevices() const {
  const auto names = ListDirectory(paths::Devices(root_));
  if (!names || !*names) return {};
  return {(*names)->begin(), (*names)->end()};
}

Result<std::vector<JournalEntry>> Journal::All() const {
  std::vector<JournalEntry> all;
  const auto containers = RH_TRY(ListDirectory(paths::Attachments(root_)));
  for (const auto& container : containers.value_or(std::vector<std::string>{})) {
    for (auto& entry : RH_TRY(OfSandbox(container))) all.push_back(std::move(entry));
  }
  return all;
}

Result<void> Journal::Write(const JournalEntry& entry) const {
  const std::string path = PathOf(entry.key);
  const std::string text = FormatJournalEntry(entry);
  if (text.size() > JsonDocument::kMaxSize) {
    // Nobody could read it again, and so nobody could bring the devices home.
    return Fail(
        ErrorCode::kInvalid,
        "the entry of " + entry.key.ToString() + " would be longer than " +
            std::to_string(JsonDocument::kMaxSize) + " bytes",
        "it holds the network configuration once for each call of the IPAM plugin: make that shorter");
  }
  RH_TRY(CheckStateFolder(root_, DirectoryOf(entry.key.container_id)));
  auto written = WriteAtomic(path, text, Sync::kVolatile);
  for (int attempt = 0; !written && written.error().sys_errno == ENOENT && attempt < 3; ++attempt) {
    // Not there yet, or removed by the DEL of a sibling in between.
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

Result<void> Journal::Remove(const JournalEntry& entry) const {
  RH_TRY(CheckStateFolder(root_, DirectoryOf(entry.key.container_id)));
  for (const auto& name : NamesOf(entry)) {
    const std::string device = paths::Devices(root_) + "/" + name;
    RH_TRY(RemoveFile(device + std::string(kTemporarySuffix)));
    if (RH_TRY(ReadLink(device)) == LinkTarget(entry.key)) RH_TRY(RemoveFile(device));
  }
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

}  // namespace railhead
