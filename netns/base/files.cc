#include "netns/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "netns/base/root_file.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

bool IsAbsence(int sys_errno) {
  return sys_errno == ENOENT || sys_errno == ENOTDIR;
}

std::string DirectoryOf(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<void> WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return FailSys(errno, "writing " + path);
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> SyncDirectory(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "opening directory " + path);
  if (::fsync(fd.get()) != 0) return FailSys(errno, "syncing directory " + path);
  return {};
}

bool IsFileAt(const std::string& path, int fd) {
  struct stat there {};
  struct stat open {};
  return ::lstat(path.c_str(), &there) == 0 && ::fstat(fd, &open) == 0 && there.st_ino == open.st_ino &&
         there.st_dev == open.st_dev;
}

// Empty, and locked until it is closed.
Result<UniqueFd> OpenTemporary(const std::string& path) {
  for (;;) {
    UniqueFd fd = RH_TRY_WRAP(OpenOwnFile(path, O_WRONLY | O_CREAT), "creating the temporary file");
    while (::flock(fd.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return FailSys(errno, "locking the temporary file " + path);
    }
    // If another writer has renamed the file in between, it is content now.
    if (!IsFileAt(path, fd.get())) continue;
    if (::ftruncate(fd.get(), 0) != 0) return FailSys(errno, "emptying the temporary file " + path);
    return fd;
  }
}

// A temporary file with its content; removed with the object, unless it has got its name.
struct Temporary {
  std::string path;
  UniqueFd fd;

  Temporary(std::string at, UniqueFd open) : path(std::move(at)), fd(std::move(open)) {}
  Temporary(Temporary&&) = default;
  Temporary& operator=(Temporary&&) = delete;
  ~Temporary() {
    if (fd.valid() && !path.empty()) (void)::unlink(path.c_str());
  }
  Result<void> RenameTo(const std::string& name) {
    if (::rename(path.c_str(), name.c_str()) != 0) return FailSys(errno, "renaming to " + name);
    path.clear();
    return {};
  }
};

Result<Temporary> MakeTemporary(const FileContent& file, mode_t mode) {
  const std::string path = file.path + std::string(kTemporarySuffix);
  Temporary temporary(path, RH_TRY(OpenTemporary(path)));
  RH_TRY(WriteAll(temporary.fd.get(), file.content, path));
  if (::fchmod(temporary.fd.get(), mode) != 0) return FailSys(errno, "setting the mode of " + path);
  return temporary;
}

// `at_once`: content that is shorter than the buffer is complete after one read.
Result<std::string> ReadOpen(const UniqueFd& fd, const std::string& path, std::size_t max_size,
                             bool at_once) {
  std::string content;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      // A pipe (/dev/stdin can be one) whose writer still exists: wait for it.
      if (errno == EAGAIN && ::fcntl(fd.get(), F_SETFL, 0) == 0) continue;
      return FailSys(errno, "reading " + path);
    }
    if (n == 0) return content;
    if (content.size() + static_cast<std::size_t>(n) > max_size) {
      return Fail(ErrorCode::kInvalid,
                  "reading " + path + ": larger than " + std::to_string(max_size) + " bytes");
    }
    content.append(buffer.data(), static_cast<std::size_t>(n));
    if (at_once && static_cast<std::size_t>(n) < buffer.size()) return content;
  }
}

Result<std::optional<std::string>> Read(const std::string& path, std::size_t max_size, bool at_once) {
  // O_NONBLOCK: opening a pipe without a writer would block for ever.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    if (IsAbsence(errno)) return std::nullopt;
    return FailSys(errno, "opening " + path);
  }
  return RH_TRY(ReadOpen(fd, path, max_size, at_once));
}

bool IsRoots(uid_t owner) {
  return owner == 0 || owner == ::geteuid();
}

std::string OctalOf(mode_t mode) {
  std::array<char, 8> digits{};
  (void)std::snprintf(digits.data(), digits.size(), "%04o", static_cast<unsigned>(mode) & 07777U);
  return digits.data();
}

// `what` names it, for the message.
Result<void> RefuseOthers(const struct stat& facts, const std::string& path, const std::string& what) {
  if (!IsRoots(facts.st_uid)) {
    return Fail(ErrorCode::kPermission,
                what + " belongs to user " + std::to_string(facts.st_uid) + ", not to root",
                "chown root " + path + ", if its content is what root wants");
  }
  // Root's own group counts, too: the mask of an ACL, which may name any user, shows as the group's bits
  // (acl(5)).
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  // The sticky bit of a folder keeps root's files in it from being replaced (inode(7)).
  if (S_ISDIR(facts.st_mode) && (facts.st_mode & S_ISVTX) != 0) return {};
  return Fail(ErrorCode::kPermission,
              what + " may be written to by others than root (mode " + OctalOf(facts.st_mode) + ")",
              "chmod go-w " + path + ", if its content is what root wants");
}

Result<void> RefuseFolder(const std::string& folder, const std::string& file) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) {
    // Opening the file says that better.
    if (IsAbsence(errno)) return {};
    return FailSys(errno, "looking at the folder " + folder);
  }
  return RefuseOthers(facts, folder, file + ": its folder " + folder);
}

Result<void> RefuseUntrusted(const UniqueFd& fd, const std::string& path) {
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return FailSys(errno, "looking at " + path);
  if (!S_ISREG(facts.st_mode)) return Fail(ErrorCode::kInvalid, path + " is not a regular file");
  return RefuseOthers(facts, path, path);
}

std::string NameOf(const UniqueFd& fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

enum class LinkFolder { kCounts, kIsAVolume };

// The file itself, with O_PATH, which opens nothing of a device or a pipe.
Result<std::optional<UniqueFd>> FindTrusted(const std::string& path, LinkFolder links) {
  // Before the file, and without it: who may remove fabric.json would be rid of its policy.
  const std::string folder = DirectoryOf(path);
  if (links == LinkFolder::kCounts) RH_TRY(RefuseFolder(folder, path));
  UniqueFd there(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!there.valid()) {
    if (IsAbsence(errno)) return std::nullopt;
    return FailSys(errno, "opening " + path);
  }
  RH_TRY(RefuseUntrusted(there, path));
  // Links are followed, so it may be elsewhere.
  const auto place = RH_TRY(ReadLink(NameOf(there)));
  const std::string own_folder = DirectoryOf(place.value_or(path));
  if (own_folder != folder || links != LinkFolder::kCounts) RH_TRY(RefuseFolder(own_folder, path));
  return there;
}

Result<std::optional<UniqueFd>> OpenTrusted(const std::string& path, LinkFolder links) {
  const auto there = RH_TRY(FindTrusted(path, links));
  if (!there) return std::nullopt;
  const std::string same = NameOf(*there);
  UniqueFd fd(::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FailSys(errno, "opening " + path + " by " + same);
  return fd;
}

Result<std::optional<std::string>> ReadTrusted(const std::string& path, std::size_t max_size,
                                               LinkFolder links) {
  const auto fd = RH_TRY(OpenTrusted(path, links));
  if (!fd) return std::nullopt;
  return RH_TRY(ReadOpen(*fd, path, max_size, false));
}

}  // namespace

Result<std::optional<std::string>> ReadFile(const std::string& path, std::size_t max_size) {
  return Read(path, max_size, false);
}

Result<std::optional<UniqueFd>> OpenRootFile(const std::string& path) {
  return OpenTrusted(path, LinkFolder::kCounts);
}

Result<void> CheckRootFile(const std::string& path) {
  RH_TRY(FindTrusted(path, LinkFolder::kCounts));
  return {};
}

Result<std::optional<std::string>> ReadRootFile(const std::string& path, std::size_t max_size) {
  return ReadTrusted(path, max_size, LinkFolder::kCounts);
}

Result<std::optional<std::string>> ReadVolumeFile(const std::string& path) {
  return ReadTrusted(path, kMaxFileSize, LinkFolder::kIsAVolume);
}

Result<void> CheckVolumeFile(const std::string& path) {
  RH_TRY(FindTrusted(path, LinkFolder::kIsAVolume));
  return {};
}

Result<std::optional<std::string>> ReadAttribute(const std::string& path) {
  // sysfs returns an attribute whole, a page at most (fs/kernfs/file.c, fs/sysfs/file.c). A second read would
  // double the reads of a caller that reads thousands.
  auto content = Read(path, kMaxFileSize, true);
  if (!content && content.error().sys_errno == ENODEV) return std::nullopt;
  if (content && *content) {
    const auto end = (*content)->find_last_not_of(" \t\r\n");
    (*content)->resize(end == std::string::npos ? 0 : end + 1);
  }
  return content;
}

Result<UniqueFd> OpenOwnFile(const std::string& path, int flags, mode_t mode) {
  // O_NONBLOCK: opening a pipe without a reader would block for ever. The flag has no effect on a file.
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode));
  if (!fd.valid()) return FailSys(errno, "opening " + path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return FailSys(errno, "looking at " + path);
  const bool ours = status.st_uid == ::geteuid() || status.st_uid == 0;
  if (S_ISREG(status.st_mode) && status.st_nlink <= 1 && ours) return fd;
  const std::string why = !S_ISREG(status.st_mode) ? "it is not a file"
                          : ours                   ? "the file has other names, too"
                                                   : "it belongs to user " + std::to_string(status.st_uid);
  return Fail(ErrorCode::kInvalid, "opening " + path + ": " + why,
              "somebody has put it there: look where it comes from, and remove it");
}

Result<void> WriteAtomic(const std::string& path, std::string_view content, Sync sync, mode_t mode) {
  return WriteAllAtomic({{path, content}}, sync, mode);
}

Result<void> WriteAllAtomic(std::vector<FileContent> files, Sync sync, mode_t mode) {
  // In one order for all writers: each waits for the locks of the others.
  std::ranges::sort(files, [](const FileContent& a, const FileContent& b) { return a.path < b.path; });
  std::vector<Temporary> temporaries;
  temporaries.reserve(files.size());
  for (const FileContent& file : files) {
    temporaries.push_back(RH_TRY(MakeTemporary(file, mode)));
  }
  // Not before all are written: the first wait covers most of the other files.
  for (const Temporary& temporary : temporaries) {
    if (sync == Sync::kDurable && ::fsync(temporary.fd.get()) != 0)
      return FailSys(errno, "syncing " + temporary.path);
  }
  std::set<std::string> directories;
  for (std::size_t i = 0; i < files.size(); ++i) {
    RH_TRY(temporaries[i].RenameTo(files[i].path));
    directories.insert(DirectoryOf(files[i].path));
  }
  if (sync != Sync::kDurable) return {};
  // A rename itself is durable only after its directory is on disk.
  for (const std::string& directory : directories) RH_TRY(SyncDirectory(directory));
  return {};
}

Result<bool> RemoveWritten(const std::string& path) {
  // The half-written file first: after a kill in between, the caller calls again because the whole file still
  // exists.
  const bool half = RH_TRY(RemoveFile(path + std::string(kTemporarySuffix)));
  return RH_TRY(RemoveFile(path)) || half;
}

Result<bool> RemoveAbandoned(const std::string& temporary) {
  struct stat status {};
  if (::lstat(temporary.c_str(), &status) != 0)
    return IsAbsence(errno) ? Result<bool>(false) : FailSys(errno, "looking at " + temporary);
  // No writer of ours makes anything else than a file.
  if (!S_ISREG(status.st_mode)) return RemoveFile(temporary);
  const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return IsAbsence(errno) ? Result<bool>(false) : FailSys(errno, "opening " + temporary);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK || errno == EINTR ? Result<bool>(false)
                                                  : FailSys(errno, "locking " + temporary);
  }
  // A writer that waits for the lock finds the file gone and makes another one (OpenTemporary).
  return IsFileAt(temporary, fd.get()) ? RemoveFile(temporary) : false;
}

Result<void> WriteAttribute(const std::string& path, std::string_view value) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "opening " + path);
  const ssize_t n = ::write(fd.get(), value.data(), value.size());
  if (n < 0) return FailSys(errno, "writing '" + std::string(value) + "' to " + path);
  return {};
}

Result<void> WriteInPlace(const std::string& path, std::string_view content, mode_t mode) {
  // Empties the file only after the check that it is ours.
  const UniqueFd fd = RH_TRY(OpenOwnFile(path, O_WRONLY | O_CREAT, mode));
  if (::ftruncate(fd.get(), 0) != 0) return FailSys(errno, "emptying " + path);
  return WriteAll(fd.get(), content, path);
}

Result<void> MakeDirectories(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return FailSys(errno, "making directory " + path);
  RH_TRY(MakeDirectories(DirectoryOf(path), mode));
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return FailSys(errno, "making directory " + path);
  return {};
}

Result<bool> RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return true;
  if (IsAbsence(errno)) return false;
  return FailSys(errno, "removing " + path);
}

bool RemoveEmptyDirectory(const std::string& path) {
  return ::rmdir(path.c_str()) == 0 || IsAbsence(errno);
}

Result<std::optional<std::vector<std::string>>> ListDirectory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) {
    if (IsAbsence(errno)) return std::nullopt;
    return FailSys(errno, "listing " + path);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0 && IsAbsence(errno)) return std::nullopt;  // removed while it was listed
  if (errno != 0) return FailSys(errno, "listing " + path);
  std::ranges::sort(names);
  return names;
}

Result<std::optional<std::string>> ReadLink(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t n = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (n >= 0) return std::string(buffer.data(), static_cast<std::size_t>(n));
  if (IsAbsence(errno) || errno == EINVAL) return std::nullopt;
  return FailSys(errno, "reading link " + path);
}

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace railhead
