#include "deviceplugin/support/install/install_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/state_folder.h"

namespace railhead::install {
namespace {

constexpr mode_t kModeBits = 07777;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

// True if the mode was changed.
Result<bool> CloseToOthers(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return FailSys(errno, "looking at " + path);
  const bool is_sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if (is_sticky || (status.st_mode & kOthersWrite) == 0) return false;
  if (::fchmod(fd, status.st_mode & kModeBits & ~kOthersWrite) == 0) return true;
  Error error = SysError(errno, "taking from others the right to write to " + path);
  error.hint = "chmod go-w " + path;
  return Fail(std::move(error));
}

bool HasMode(const std::string& path, mode_t mode) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         (status.st_mode & kModeBits) == mode;
}

}  // namespace

Result<InstallDirectory> InstallDirectory::Open(const std::string& path, std::chrono::milliseconds limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    Error error = SysError(errno, "opening directory " + path);
    error.hint = "make the directory, or name the one that is meant";
    return Fail(std::move(error));
  }
  if (auto locked = LockWithin(fd.get(), path, limit); !locked) {
    if (locked.error().code == ErrorCode::kTimeout)
      locked.error().hint = "another installer has the directory: railctl install or railheadd";
    return Fail(std::move(locked.error()));
  }
  return InstallDirectory(path, std::move(fd));
}

std::string InstallDirectory::PathOf(std::string_view name) const {
  return std::string(path_).append("/").append(name);
}

Result<std::vector<std::string>> InstallDirectory::TakeFromOthers(
    const std::vector<std::string>& names) const {
  std::vector<std::string> changed;
  if (RH_TRY(CloseToOthers(lock_.get(), path_))) changed.push_back(path_);
  for (const std::string& name : names) {
    const std::string path = PathOf(name);
    // A link or another user's file is not ours to change; its readers refuse it.
    const auto file = OpenOwnFile(path, O_RDONLY);
    if (!file) continue;
    if (RH_TRY(CloseToOthers(file->get(), path))) changed.push_back(path);
  }
  return changed;
}

Result<InstallOutcome> InstallDirectory::Compare(const FileToInstall& file, mode_t mode) const {
  const std::string path = PathOf(file.name);
  const auto there = RH_TRY(ReadFile(path, kMaxInstalledSize));
  if (!there) return InstallOutcome::kInstalled;
  return *there == file.content && HasMode(path, mode) ? InstallOutcome::kUnchanged
                                                       : InstallOutcome::kReplaced;
}

Result<std::vector<InstalledFile>> InstallDirectory::Put(const std::vector<FileToInstall>& files,
                                                         mode_t mode) const {
  std::vector<InstalledFile> done;
  std::vector<FileContent> changed;
  for (const FileToInstall& file : files) {
    const auto outcome = RH_TRY(Compare(file, mode));
    done.push_back({file.name, outcome});
    if (done.back().outcome != InstallOutcome::kUnchanged) {
      changed.push_back({PathOf(file.name), file.content});
    } else {
      // A killed installer may have made it. Other installers wait for this one. A read-only directory
      // refuses the removal also of what is not there.
      const std::string temporary = PathOf(file.name) + std::string(kTemporarySuffix);
      if (Exists(temporary)) RH_TRY(RemoveFile(temporary));
    }
  }
  if (!changed.empty()) RH_TRY(WriteAllAtomic(std::move(changed), Sync::kDurable, mode));
  return done;
}

}  // namespace railhead::install
