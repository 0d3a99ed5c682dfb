#include "netns/base/state_folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <string_view>

#include "netns/base/files.h"
#include "netns/base/root.h"

namespace railhead {
namespace {

constexpr std::array<std::string_view, 4> kTops = {"/run/railhead", "/run/cdi", "/var/run/k8s.cni.cncf.io",
                                                   "/var/lib/railhead"};
constexpr int kAttempts = 20;

// Folders before their contents. Durable folders outlive the boot; the others outlive any process.
constexpr std::array<StateFolder, 14> kFolders = {{
    {.path = "/run/railhead", .file_mode = 0644},
    {.path = "/run/railhead/attachments", .mode = 0700, .owner = StateOwner::kSandbox},
    {.path = "/run/railhead/cdi", .owner = StateOwner::kDevice},
    {.path = "/run/railhead/displaced-names", .file_mode = 0644, .owner = StateOwner::kDevice},
    {.path = "/run/railhead/nccl", .file_mode = 0644, .owner = StateOwner::kSandbox},
    {.path = "/run/railhead/nccl-device", .file_mode = 0644, .owner = StateOwner::kDevice},
    {.path = "/run/railhead/locks"},
    {.path = "/run/railhead/provision", .file_mode = 0644, .owner = StateOwner::kDevice},
    {.path = "/run/railhead/tenants", .mode = 0700, .owner = StateOwner::kDevice},
    {.path = "/run/cdi",
     .file_mode = 0644,
     .owner = StateOwner::kDevice,
     .prefix = "railhead",
     .suffix = ".json"},
    {.path = "/var/run/k8s.cni.cncf.io/devinfo/dp", .file_mode = 0444, .suffix = "-device.json"},
    {.path = "/var/lib/railhead", .file_mode = 0644, .sync = Sync::kDurable},
    {.path = "/var/lib/railhead/allocations",
     .mode = 0700,
     .sync = Sync::kDurable,
     .owner = StateOwner::kDevice},
    {.path = "/var/lib/railhead/ipam", .sync = Sync::kDurable, .owner = StateOwner::kStore},
}};

Error Refused(const std::string& folder, const std::string& why, const std::string& hint) {
  return Error{ErrorCode::kInvalid, "the folder " + folder + " " + why, hint, 0};
}

bool IsTrusted(uid_t owner) {
  return owner == 0 || owner == ::geteuid();
}

// Also below a non-directory: the call that makes the folder reports that better.
bool IsAbsent(int sys_errno) {
  return sys_errno == ENOENT || sys_errno == ENOTDIR;
}

// Whether other users than its owner may add and remove names.
bool IsOpenToOthers(const struct stat& status) {
  const bool by_group = (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0 && status.st_gid != ::getegid();
  return by_group || (status.st_mode & S_IWOTH) != 0;
}

// false when the folder does not exist.
Result<bool> CheckOne(const std::string& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) {
    if (IsAbsent(errno)) return false;
    return FailSys(errno, "looking at the folder " + folder);
  }
  if (S_ISLNK(status.st_mode)) {
    return Fail(Refused(folder, "is a symbolic link: files below it would be written elsewhere",
                        "remove it; to keep the state on another disk, mount it there"));
  }
  if (!S_ISDIR(status.st_mode)) return Fail(Refused(folder, "is not a directory", "remove what is there"));
  if (!IsTrusted(status.st_uid)) {
    return Fail(Refused(folder, "belongs to user " + std::to_string(status.st_uid) + ", not to root",
                        "look at what is in it, then: chown root " + folder));
  }
  if (IsOpenToOthers(status)) {
    return Fail(Refused(folder, "may be written to by others than root",
                        "look at what is in it, then: chmod go-w " + folder));
  }
  return true;
}

// In a folder that is open to all, as /tmp is, the sticky bit keeps a name from being taken by another.
Result<void> CheckHolder(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (IsAbsent(errno)) return {};
    return FailSys(errno, "looking at the folder " + folder);
  }
  if (IsTrusted(status.st_uid) && (!IsOpenToOthers(status) || (status.st_mode & S_ISVTX) != 0)) return {};
  return Fail(Refused(folder, "may be changed by others than root, who could replace what is in it",
                      "chown root and chmod go-w " + folder));
}

// The top that `folder` is, or is below; "" if it has no top.
std::string TopOf(const Root& root, const std::string& folder) {
  for (const std::string_view name : kTops) {
    std::string top = root.Path(name);
    if (folder == top || folder.starts_with(top + "/")) return top;
  }
  return "";
}

std::string HolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// The innermost folder of the table that `path` is, or is in. A path outside of all of them counts as in the
// first.
const StateFolder& FolderOf(const Root& root, const std::string& path) {
  const StateFolder* found = &kFolders.front();
  for (const StateFolder& folder : kFolders) {
    const std::string place = root.Path(folder.path);
    if (path == place || path.starts_with(place + "/")) found = &folder;
  }
  return *found;
}

}  // namespace

std::span<const StateFolder> StateFolders() {
  return kFolders;
}

Result<void> CheckStateFolder(const Root& root, const std::string& folder) {
  const std::string top = TopOf(root, folder);
  if (top.empty()) return {};
  if (const std::string holder = HolderOf(top); !holder.empty()) RH_TRY(CheckHolder(holder));
  for (std::size_t end = top.size();; end = std::min(folder.find('/', end + 1), folder.size())) {
    if (!RH_TRY(CheckOne(folder.substr(0, end))) || end == folder.size()) return {};
  }
}

Result<void> CheckStateFolders(const Root& root) {
  for (const StateFolder& folder : kFolders) RH_TRY(CheckStateFolder(root, root.Path(folder.path)));
  return {};
}

Result<void> MakeStateFolder(const Root& root, const std::string& folder) {
  // Before making it: below a link, the folder would be made elsewhere. After: another process may have been
  // faster.
  RH_TRY(CheckStateFolder(root, folder));
  RH_TRY(MakeDirectories(folder, FolderOf(root, folder).mode));
  return CheckStateFolder(root, folder);
}

Result<void> MakeStateFolderOf(const Root& root, const std::string& file) {
  return MakeStateFolder(root, HolderOf(file));
}

Result<void> WriteStateFile(const Root& root, const std::string& file, std::string_view content) {
  const StateFolder& folder = FolderOf(root, HolderOf(file));
  RH_TRY(CheckStateFolder(root, HolderOf(file)));
  auto written = WriteAtomic(file, content, folder.sync, folder.file_mode);
  for (int attempt = 0; !written && written.error().sys_errno == ENOENT && attempt < kAttempts; ++attempt) {
    // The folder is absent, or was removed in between: by the DEL of a sibling, or by a process that found it
    // empty.
    RH_TRY(MakeStateFolderOf(root, file));
    written = WriteAtomic(file, content, folder.sync, folder.file_mode);
  }
  return written;
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

timespec TimeOf(milliseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {static_cast<time_t>(seconds.count()),
          static_cast<long>(std::chrono::nanoseconds(time - seconds).count())};
}

// While it lives, a blocking call of the thread ends with EINTR after `first`, and every `next` from then on.
// A single signal that comes between two calls would end neither.
class Interrupter {
 public:
  Interrupter(milliseconds first, milliseconds next) {
    // Stays for good: another thread may be waiting when this one is done.
    struct sigaction ignore = {};
    ignore.sa_handler = [](int) {};
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = Signal();
    event._sigev_un._tid = ::gettid();
    armed_ =
        ::sigaction(Signal(), &ignore, nullptr) == 0 && ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (!armed_) return;
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, Signal());
    ::pthread_sigmask(SIG_UNBLOCK, &signals, &mask_before_);
    const itimerspec times = {TimeOf(next), TimeOf(std::max(first, milliseconds(1)))};
    ::timer_settime(timer_, 0, &times, nullptr);
  }
  Interrupter(const Interrupter&) = delete;
  Interrupter& operator=(const Interrupter&) = delete;
  ~Interrupter() {
    if (!armed_) return;
    ::timer_delete(timer_);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  // If not, errno says why, and nothing ends a blocking call.
  [[nodiscard]] bool armed() const { return armed_; }

 private:
  // One of the signals that nothing else uses.
  static int Signal() { return SIGRTMAX - 1; }

  timer_t timer_ = nullptr;
  sigset_t mask_before_ = {};
  bool armed_ = false;
};

constexpr milliseconds kAfterLimit{10};
// Each time a waiter loses its place in the queue.
constexpr milliseconds kHearStop{200};

// Whether the lock was got; errno says why not: EINTR after `limit` or a stop.
//
// The kernel's queue (fs/locks.c) is first come, first served and wakes one. A process that polls instead
// gets the lock by luck: of 32 at once the last waited ten times as long as most.
bool WaitForLock(int fd, milliseconds limit, const std::atomic<bool>* stop) {
  const auto deadline = Clock::now() + limit;
  const Interrupter interrupter(stop != nullptr ? std::min(limit, kHearStop) : limit,
                                stop != nullptr ? kHearStop : kAfterLimit);
  if (!interrupter.armed()) return false;
  for (;;) {
    if (::flock(fd, LOCK_EX) == 0) return true;
    if (errno != EINTR) return false;
    if (Clock::now() >= deadline || (stop != nullptr && *stop)) break;
  }
  errno = EINTR;
  return false;
}

}  // namespace

Result<void> LockWithin(int fd, const std::string& path, milliseconds limit, const std::atomic<bool>* stop) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK && errno != EINTR) return FailSys(errno, "locking " + path);
  if (limit > milliseconds::zero()) {
    if (WaitForLock(fd, limit, stop)) return {};
    if (errno != EINTR) return FailSys(errno, "locking " + path);
  }
  return Fail(ErrorCode::kTimeout,
              "locking " + path + ": still held after " + std::to_string(limit.count()) + " ms");
}

Result<FileLock> FileLock::Acquire(const std::string& path, milliseconds limit,
                                   const std::atomic<bool>* stop) {
  // Read-only: each close of a file open for writing would wake the processes that watch lock files.
  auto opened = OpenOwnFile(path, O_RDONLY | O_CREAT);
  if (!opened && opened.error().sys_errno == ENOENT) {
    RH_TRY(MakeDirectories(path.substr(0, path.rfind('/'))));
    opened = OpenOwnFile(path, O_RDONLY | O_CREAT);
  }
  UniqueFd fd = RH_TRY_WRAP(std::move(opened), "opening the lock");
  RH_TRY(LockWithin(fd.get(), path, limit, stop));
  return FileLock(std::move(fd));
}

}  // namespace railhead
