// The journal's changes: entries and the lock files of their devices.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/base/unique_fd.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

// Called under the device's lock. The text is within one page, so a killed writer has written the whole text
// or nothing (generic_perform_write of mm/filemap.c). Anything behind the first line is the end of an
// earlier, longer text.
Result<void> WriteHolder(const Root& root, const std::string& device, const std::string& holder) {
  const std::string path = paths::Lock(root, device);
  const UniqueFd fd = RH_TRY(OpenOwnFile(path, O_WRONLY | O_CREAT));
  const std::string line = holder + "\n";
  if (::pwrite(fd.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size()) ||
      ::ftruncate(fd.get(), static_cast<off_t>(line.size())) != 0)
    return FailSys(errno, "writing " + path);
  return {};
}

Result<bool> ClearHolder(const Root& root, const std::string& device) {
  const std::string path = paths::Lock(root, device);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || status.st_size == 0) return false;
  const UniqueFd fd = RH_TRY(OpenOwnFile(path, O_WRONLY));
  if (::ftruncate(fd.get(), 0) != 0) return FailSys(errno, "emptying " + path);
  return true;
}

}  // namespace

Result<void> Journal::Write(const JournalEntry& entry) const {
  // An entry that cannot be read again could not be restored.
  const std::string text = RH_TRY_WRAP(FormatJournalEntry(entry), "it could not be read again");
  if (text.size() > JsonDocument::kMaxSize) {
    return Fail(
        ErrorCode::kInvalid,
        "the entry of " + entry.key.ToString() + " would be longer than " +
            std::to_string(JsonDocument::kMaxSize) + " bytes",
        "it holds the network configuration once for each call of the IPAM plugin: make that shorter");
  }
  RH_TRY(WriteStateFile(root_, PathOf(entry.key), text));
  for (const auto& name : NamesOf(entry)) {
    if (RH_TRY(IsHeldBy(name, entry.key))) continue;
    RH_TRY(MakeStateFolder(root_, paths::Locks(root_)));
    RH_TRY(WriteHolder(root_, name, RelativePathOf(entry.key)));
  }
  return {};
}

Result<void> Journal::LetGo(const JournalEntry& entry) const {
  for (const auto& name : NamesOf(entry)) {
    if (RH_TRY(IsHeldBy(name, entry.key))) RH_TRY(ClearHolder(root_, name));
  }
  return {};
}

Result<void> Journal::FreeDevices(const JournalEntry& entry) const {
  JournalEntry without_devices = entry;
  without_devices.devices.clear();
  RH_TRY(Write(without_devices));
  return LetGo(entry);
}

Result<void> Journal::Remove(const JournalEntry& entry) const {
  RH_TRY(CheckStateFolder(root_, DirectoryOf(entry.key.container_id)));
  RH_TRY(LetGo(entry));
  RH_TRY(RemoveWritten(PathOf(entry.key)));
  (void)RemoveEmptyDirectory(DirectoryOf(entry.key.container_id));  // siblings may still be there
  return {};
}

Result<void> Journal::RemovePartial(const AttachmentKey& key) const {
  RH_TRY(CheckStateFolder(root_, DirectoryOf(key.container_id)));
  RH_TRY(RemoveFile(PathOf(key) + std::string(kTemporarySuffix)));
  (void)RemoveEmptyDirectory(DirectoryOf(key.container_id));
  return {};
}

Result<void> Journal::RemoveUnreadable(const UnreadableEntry& entry) const {
  const std::string directory = entry.path.substr(0, entry.path.rfind('/'));
  RH_TRY(CheckStateFolder(root_, directory));
  for (const auto& name : entry.devices) RH_TRY(ClearHolder(root_, name));
  RH_TRY(RemoveWritten(entry.path));
  (void)RemoveEmptyDirectory(directory);
  return {};
}

Result<bool> Journal::Free(const std::string& device) const {
  return RH_TRY(HoldsDevice(device)) ? false : ClearHolder(root_, device);
}

}  // namespace railhead
