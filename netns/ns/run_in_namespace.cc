#include "netns/ns/run_in_namespace.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "netns/base/close_descriptors.h"
#include "netns/base/unique_fd.h"

namespace railhead {
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
