#include "tests/system/crash/daemon_changes.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "tests/system/crash/tracer.h"

namespace railhead::crash {
namespace {

constexpr std::size_t kPage = 4096;

bool Peek(pid_t pid, std::uint64_t from, void* to, std::size_t size) {
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(from), size};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

// Reads page by page, since the page after the text may not be mapped.
std::string TextAt(pid_t pid, std::uint64_t from) {
  std::string text;
  std::array<char, kPage> buffer{};
  while (text.size() < kPage) {
    const std::size_t size = kPage - from % kPage;
    if (!Peek(pid, from, buffer.data(), size)) return text;
    const auto* const end = std::find(buffer.data(), buffer.data() + size, '\0');
    text.append(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
    if (end != buffer.data() + size) return text;
    from += size;
  }
  return text;
}

std::string PathOf(pid_t pid, std::uint64_t descriptor) {
  const auto link =
      ReadLink("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(static_cast<int>(descriptor)));
  return link ? link->value_or("") : "";
}

// A copy of the process's descriptor.
UniqueFd Borrow(pid_t pid, std::uint64_t descriptor) {
  // Uses the thread group's pidfd: before Linux 6.9 a thread has no pidfd of its own.
  const auto status = ReadFile("/proc/" + std::to_string(pid) + "/status");
  if (!status || !*status) return UniqueFd(-1);
  constexpr std::string_view kGroup = "Tgid:\t";
  const auto at = (*status)->find(kGroup);
  if (at == std::string::npos) return UniqueFd(-1);
  const std::string rest = (*status)->substr(at + kGroup.size());
  const auto group = ParseInt(rest.substr(0, rest.find('\n')));
  if (!group) return UniqueFd(-1);
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*group), 0)));
  return UniqueFd(
      static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), static_cast<int>(descriptor), 0)));
}

// Reads the start of the data that it sends; false if that cannot be read.
template <typename Header>
bool PeekSent(pid_t pid, const SystemCall& call, Header* header) {
  std::uint64_t from = call.arguments[1];
  if (call.number == SYS_sendmsg) {
    msghdr message{};
    iovec vector{};
    if (!Peek(pid, from, &message, sizeof(message)) || message.msg_iovlen == 0) return false;
    if (!Peek(pid, reinterpret_cast<std::uint64_t>(message.msg_iov), &vector, sizeof(vector))) return false;
    from = reinterpret_cast<std::uint64_t>(vector.iov_base);
  }
  return Peek(pid, from, header, sizeof(*header));
}

std::optional<std::string> Sent(pid_t pid, const SystemCall& call) {
  const UniqueFd socket = Borrow(pid, call.arguments[0]);
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return std::nullopt;
  if (domain == AF_UNIX) return "send";
  nlmsghdr header{};
  if (domain != AF_NETLINK || !PeekSent(pid, call, &header)) return std::nullopt;
  if ((header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP) return std::nullopt;
  return "netlink request " + std::to_string(header.nlmsg_type);
}

std::optional<std::string> SocketPath(pid_t pid, const SystemCall& call) {
  sockaddr_un address{};
  const auto size = std::min<std::size_t>(call.arguments[2], sizeof address);
  if (!Peek(pid, call.arguments[1], &address, size) || address.sun_family != AF_UNIX) return std::nullopt;
  return std::string(address.sun_path, ::strnlen(address.sun_path, sizeof address.sun_path));
}

// The path that the call changes.
std::optional<std::string> Changed(pid_t pid, const SystemCall& call) {
  const auto* const arguments = call.arguments;
  constexpr std::uint64_t kMakes = O_CREAT | O_TRUNC;
  switch (call.number) {
    case SYS_open:
      return (arguments[1] & kMakes) == 0 ? std::nullopt : std::optional(TextAt(pid, arguments[0]));
    case SYS_openat:
      return (arguments[2] & kMakes) == 0 ? std::nullopt : std::optional(TextAt(pid, arguments[1]));
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_fchmod:
    case SYS_fchown:
      return PathOf(pid, arguments[0]);
    case SYS_rename:
    case SYS_link:
    case SYS_symlink:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_fchmodat:
      return TextAt(pid, arguments[1]);
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat:
      return TextAt(pid, arguments[3]);
    case SYS_symlinkat:
      return TextAt(pid, arguments[2]);
    case SYS_unlink:
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_chmod:
    case SYS_truncate:
      return TextAt(pid, arguments[0]);
    case SYS_bind:
    case SYS_connect:
      return SocketPath(pid, call);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> ChangeBy(pid_t pid, const SystemCall& call, const std::string& below) {
  const std::string name = NameOfCall(static_cast<int>(call.number));
  if (call.number == SYS_sendmsg || call.number == SYS_sendto) return Sent(pid, call);
  if (call.number == SYS_listen) return name;
  const auto path = Changed(pid, call);
  if (!path || !path->starts_with(below)) return std::nullopt;
  return name + " " + path->substr(below.size() - 1);
}

}  // namespace railhead::crash
