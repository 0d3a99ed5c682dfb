#include "netns/ns/netns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

constexpr char kGoneHint[] = "the sandbox is gone already; nothing is left to do in it";

}  // namespace

Result<NetNs> NetNs::Open(const std::string& path) {
  const std::string what = "opening network namespace " + path;
  // O_NONBLOCK: a FIFO in its place must not hang the caller.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    // ENOTDIR, ESRCH: /proc/PID/ns/net of a process that is gone.
    const int code = errno == ENOTDIR || errno == ESRCH ? ENOENT : errno;
    Error error = SysError(code, what);
    if (code == ENOENT) error.hint = kGoneHint;
    return Fail(std::move(error));
  }
  struct statfs file_system {};
  if (fstatfs(fd.get(), &file_system) != 0) return FailSys(errno, what);
  if (file_system.f_type != NSFS_MAGIC) {
    return Fail(ErrorCode::kNotFound, what + ": it is a plain file, no namespace is mounted there",
                kGoneHint);
  }
  const int kind = ioctl(fd.get(), NS_GET_NSTYPE);
  if (kind < 0) return FailSys(errno, what);
  if (kind != CLONE_NEWNET) {
    return Fail(ErrorCode::kInvalid, what + ": it is a namespace of another kind",
                "give the path of the sandbox's network namespace, as in /var/run/netns/NAME");
  }
  return FromFd(std::move(fd), path);
}

Result<NetNs> NetNs::Current() {
  return Open("/proc/thread-self/ns/net");
}

Result<NetNs> NetNs::Make(const std::string& name) {
  // In a thread of its own, which ends in the new one: the calling thread stays where it is, whatever fails.
  Result<UniqueFd> made = UniqueFd();
  std::thread([&made, &name] {
    if (unshare(CLONE_NEWNET) != 0) {
      Error error = SysError(errno, "making network namespace " + name);
      if (error.sys_errno == EPERM) error.hint = "this needs CAP_SYS_ADMIN";
      made = Fail(std::move(error));
      return;
    }
    made = UniqueFd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!made->valid()) made = FailSys(errno, "opening network namespace " + name);
  }).join();
  return FromFd(RH_TRY(std::move(made)), name);
}

Result<NetNs> NetNs::FromFd(UniqueFd fd, std::string path) {
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return FailSys(errno, "looking at network namespace " + path);
  NetNs ns;
  ns.fd_ = std::move(fd);
  ns.path_ = std::move(path);
  ns.device_ = status.st_dev;
  ns.inode_ = status.st_ino;
  return ns;
}

Result<void> OpenSocketsIn(const NetNs& ns, const std::function<Result<void>()>& open) {
  const NetNs original = RH_TRY(NetNs::Current());
  if (original.SameAs(ns)) return open();
  if (setns(ns.fd(), CLONE_NEWNET) != 0) {
    Error error = SysError(errno, "entering network namespace " + ns.path());
    if (error.sys_errno == EPERM) error.hint = "this needs CAP_SYS_ADMIN";
    return Fail(std::move(error));
  }
  Result<void> opened = open();
  if (setns(original.fd(), CLONE_NEWNET) != 0) {
    std::perror("railhead: cannot return to the own network namespace");
    std::abort();
  }
  return opened;
}

namespace {

// PROC_PID_INIT_INO of include/linux/proc_ns.h. In another PID namespace process 1 is not the host's.
constexpr const char* kFirstPidNamespace = "pid:[4026531836]";
constexpr std::size_t kMountPoint = 4;
constexpr std::size_t kFirstTag = 6;

bool IsBelow(const std::string& path, const std::string& mount_point) {
  return mount_point == "/" || path == mount_point || path.starts_with(mount_point + "/");
}

// Without links, as mountinfo has it.
std::string Resolved(const Root& root, const std::string& path) {
  const std::string full = root.Path(path);
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(full.c_str(), nullptr), std::free);
  if (!real) return path;
  const std::string resolved(real.get());
  const std::string& prefix = root.prefix();
  return !prefix.empty() && resolved.starts_with(prefix) ? resolved.substr(prefix.size()) : resolved;
}

Result<bool> IsWithProcessOne(const Root& root) {
  const auto pids = RH_TRY(ReadLink(root.Path("/proc/self/ns/pid")));
  const auto own = RH_TRY(ReadLink(root.Path("/proc/self/ns/mnt")));
  const auto first = RH_TRY(ReadLink(root.Path("/proc/1/ns/mnt")));
  return pids == kFirstPidNamespace && own && own == first;
}

}  // namespace

bool PropagatesTo(std::string_view mountinfo, const std::string& directory) {
  std::string nearest;
  bool propagates = true;
  for (const std::string& line : Split(mountinfo, '\n')) {
    const auto fields = Split(line, ' ');
    if (fields.size() <= kFirstTag || !IsBelow(directory, fields[kMountPoint])) continue;
    // A later mount of the same place hides the earlier one.
    if (fields[kMountPoint].size() < nearest.size()) continue;
    nearest = fields[kMountPoint];
    propagates = false;
    for (std::size_t i = kFirstTag; i < fields.size() && fields[i] != "-"; ++i)
      propagates = propagates || fields[i].starts_with("shared:") || fields[i].starts_with("master:");
  }
  return propagates;
}

Result<bool> SeesMountsOfHost(const Root& root, const std::string& directory) {
  const auto text = RH_TRY(ReadFile(root.Path("/proc/self/mountinfo")));
  if (!text || PropagatesTo(*text, Resolved(root, directory))) return true;
  return IsWithProcessOne(root).value_or(false);
}

namespace {

Result<ino_t> InodeOfNamespace(const NetNs& ns) {
  UniqueFd fd;
  const auto open_file = [&]() -> Result<void> {
    fd.Reset(open("/proc/thread-self/net/dev", O_PATH | O_CLOEXEC));
    if (!fd.valid()) return FailSys(errno, "opening its net/dev");
    return {};
  };
  RH_TRY(OpenSocketsIn(ns, open_file));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return FailSys(errno, "looking at its net/dev");
  return status.st_ino;
}

// With one of these errors the process has ended in between, or is a zombie.
bool HasEnded(int error) {
  return error == ENOENT || error == ESRCH || error == EINVAL;
}

Result<std::vector<pid_t>> Look(const NetNs& ns, bool one_is_enough) {
  const std::string what = "looking for processes in network namespace " + ns.path();
  const ino_t wanted = RH_TRY_WRAP(InodeOfNamespace(ns), what);
  const auto names = RH_TRY_WRAP(ListDirectory("/proc"), what);
  if (!names) return Fail(ErrorCode::kNotFound, what + ": /proc does not exist", "mount it");
  std::vector<pid_t> found;
  for (const std::string& name : *names) {
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size()) continue;
    const std::string path = "/proc/" + name + "/net/dev";
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
      if (HasEnded(errno)) continue;
      return Fail(Wrap(SysError(errno, path), what));
    }
    if (status.st_ino != wanted) continue;
    found.push_back(pid);
    if (one_is_enough) break;
  }
  return found;
}

}  // namespace

Result<bool> HasProcesses(const NetNs& ns) {
  return !RH_TRY(Look(ns, true)).empty();
}

Result<std::vector<pid_t>> ProcessesIn(const NetNs& ns) {
  return Look(ns, false);
}

namespace {

using TimePoint = std::chrono::steady_clock::time_point;

constexpr std::size_t kMaxResult = std::size_t{4} << 20;

// The child's answer: one kind byte, for errors code and errno, then text.
enum class Kind : std::uint8_t { kValue = 'v', kError = 'e' };

std::string Encode(const Result<std::string>& result) {
  std::string bytes;
  if (result) {
    bytes.push_back(static_cast<char>(Kind::kValue));
    return bytes + *result;
  }
  const Error& error = result.error();
  bytes.push_back(static_cast<char>(Kind::kError));
  bytes.push_back(static_cast<char>(error.code));
  bytes.append(reinterpret_cast<const char*>(&error.sys_errno), sizeof(error.sys_errno));
  return bytes + error.message + '\0' + error.hint;
}

Result<std::string> Decode(const std::string& bytes) {
  constexpr std::size_t kPrefix = 2 + sizeof(int);
  if (!bytes.empty() && bytes[0] == static_cast<char>(Kind::kValue)) return bytes.substr(1);
  if (bytes.size() < kPrefix || bytes[0] != static_cast<char>(Kind::kError)) {
    return Fail(ErrorCode::kInternal, "the helper process ended without an answer");
  }
  Error error;
  error.code = static_cast<ErrorCode>(bytes[1]);
  std::memcpy(&error.sys_errno, bytes.data() + 2, sizeof(error.sys_errno));
  const auto end = bytes.find('\0', kPrefix);
  error.message = bytes.substr(kPrefix, end - kPrefix);
  if (end != std::string::npos) error.hint = bytes.substr(end + 1);
  return Fail(std::move(error));
}

[[noreturn]] void Child(const NetNs& ns, pid_t parent, int out,
                        const std::function<Result<std::string>()>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before we asked
  CloseDescriptors(STDERR_FILENO + 1, {ns.fd(), out});
  // If the parent is gone, the write fails with EPIPE: nobody needs the answer.
  signal(SIGPIPE, SIG_IGN);
  const Result<void> entered = EnterForGood(ns);
  const std::string bytes = Encode(entered ? work() : Fail(entered.error()));
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t size = write(out, bytes.data() + written, bytes.size() - written);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) _exit(1);
    written += static_cast<std::size_t>(size);
  }
  _exit(0);
}

// Everything up to end of file.
Result<std::string> ReadAll(int fd, TimePoint deadline) {
  using std::chrono::milliseconds;
  std::string bytes;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd waiting{fd, POLLIN, 0};
    const int timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
    const int ready = poll(&waiting, 1, timeout);
    if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for the helper process");
    if (ready == 0 && left <= timeout) return Fail(ErrorCode::kTimeout, "the helper process took too long");
    if (ready <= 0) continue;
    char piece[16384];
    const ssize_t size = read(fd, piece, sizeof(piece));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return FailSys(errno, "reading from the helper process");
    if (size == 0) return bytes;
    bytes.append(piece, static_cast<std::size_t>(size));
    if (bytes.size() > kMaxResult) return Fail(ErrorCode::kIo, "the helper process said too much");
  }
}

}  // namespace

Result<void> EnterForGood(const NetNs& ns) {
  if (setns(ns.fd(), CLONE_NEWNET) != 0) return FailSys(errno, "entering network namespace " + ns.path());
  if (unshare(CLONE_NEWNS) != 0) return FailSys(errno, "making a private mount namespace");
  // The mounts below must not show outside, even if / is a shared mount.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return FailSys(errno, "making mounts private");
  }
  if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return FailSys(errno, "mounting sysfs of network namespace " + ns.path());
  }
  return {};
}

Result<std::string> RunInNamespace(const NetNs& ns, TimePoint deadline,
                                   const std::function<Result<std::string>()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FailSys(errno, "making a pipe");
  UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return FailSys(errno, "forking a helper process");
  if (child == 0) {
    in.Reset();
    Child(ns, parent, out.get(), work);
  }
  out.Reset();
  auto bytes = ReadAll(in.get(), deadline);
  // After a whole answer the child ends by itself; in every other case it must not go on.
  if (!bytes) kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  auto result = bytes ? Decode(*bytes) : std::move(bytes);
  if (!result) return Fail(Wrap(std::move(result.error()), "looking into network namespace " + ns.path()));
  return result;
}

}  // namespace railhead
