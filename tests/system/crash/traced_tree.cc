#include "tests/system/crash/traced_tree.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "netns/nl/attributes.h"
#include "tests/system/crash/tracer.h"

namespace railhead::crash {
namespace {

constexpr std::size_t kLongestRequest = 8192;

bool ReadMemory(pid_t pid, std::uint64_t from, void* to, std::size_t size) {
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(from), size};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

// Where the call's data is.
std::optional<iovec> Sent(pid_t pid, std::uint64_t number, const std::uint64_t* arguments) {
  if (number == SYS_sendto) {
    return iovec{reinterpret_cast<void*>(arguments[1]), arguments[2]};  // NOLINT(performance-no-int-to-ptr)
  }
  if (number != SYS_sendmsg) return std::nullopt;
  msghdr message{};
  iovec vector{};
  if (!ReadMemory(pid, arguments[1], &message, sizeof(message)) || message.msg_iovlen != 1)
    return std::nullopt;
  if (!ReadMemory(pid, reinterpret_cast<std::uint64_t>(message.msg_iov), &vector, sizeof(vector)))
    return std::nullopt;
  return vector;
}

bool HasAttribute(std::span<const std::uint8_t> message, int wanted) {
  constexpr std::size_t kHeaders = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(ifinfomsg));
  if (message.size() < kHeaders) return false;
  bool found = false;
  nl::ForEachAttribute(message.subspan(kHeaders), [&](int type, nl::BytesView) { found |= type == wanted; });
  return found;
}

// Turns a netlink request of a traced process into one that does nothing: its type becomes NLMSG_NOOP. The
// kernel acknowledges that without doing anything (netlink_rcv_skb in net/netlink/af_netlink.c), so the
// sender believes that it is done. `pid` has stopped before system call `number` with these arguments. true:
// it was about to send such a request, which is now erased.
bool EraseNetlinkRequest(pid_t pid, std::uint64_t number, const std::uint64_t* arguments,
                         const Suppressed& suppressed) {
  const auto sent = Sent(pid, number, arguments);
  if (!sent || sent->iov_len < sizeof(nlmsghdr) || sent->iov_len > kLongestRequest) return false;
  std::vector<std::uint8_t> bytes(sent->iov_len);
  const auto start = reinterpret_cast<std::uint64_t>(sent->iov_base);
  if (!ReadMemory(pid, start, bytes.data(), bytes.size())) return false;
  nlmsghdr header{};
  std::copy_n(bytes.data(), sizeof(header), reinterpret_cast<std::uint8_t*>(&header));
  if (header.nlmsg_len != bytes.size() || header.nlmsg_type != suppressed.message_type) return false;
  if (suppressed.with_attribute && !HasAttribute(bytes, *suppressed.with_attribute)) return false;
  header.nlmsg_type = NLMSG_NOOP;
  const iovec local{&header, sizeof(header)};
  const iovec remote{sent->iov_base, sizeof(header)};
  return ::process_vm_writev(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(sizeof(header));
}

// Waits only for this thread's children and tracees, so that threads can trace at the same time.
constexpr int kWaitFlags = __WALL | __WNOTHREAD;
constexpr int kSyscallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
constexpr unsigned long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                                   PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;

std::string ProgramOf(pid_t pid) {
  const auto path = ReadLink("/proc/" + std::to_string(pid) + "/exe");
  if (!path || !*path) return "?";
  return (*path)->substr((*path)->rfind('/') + 1);
}

}  // namespace

Result<void> TracedTree::Seize(pid_t pid, bool executes) {
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) != 0) {
    const int error = errno;
    (void)::kill(pid, SIGKILL);
    (void)::waitpid(pid, nullptr, __WALL);
    return FailSys(error, "tracing a process");
  }
  first_ = pid;
  before_exec_ = executes;
  (void)NumberOf(pid);
  // Stops it once, so that the tracer can resume it and follow its calls.
  if (!executes) (void)::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
  return {};
}

TraceResult TracedTree::Follow() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, kWaitFlags);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) break;
    if (WIFSTOPPED(status)) {
      OnStop(pid, status);
      continue;
    }
    live_.erase(pid);
    if (pid != first_) continue;
    result_.status = status;
    break;
  }
  LetGo();
  return std::move(result_);
}

int TracedTree::NumberOf(pid_t pid) {
  const auto [entry, is_new] = live_.try_emplace(pid, static_cast<int>(result_.processes.size()));
  if (is_new) result_.processes.emplace_back();
  return entry->second;
}

bool TracedTree::IsFollowed(int number) const {
  if (number == 0 && before_exec_) return false;
  if (tracing_.count || tracing_.suppressed) return true;
  if (tracing_.kill_before) return !result_.reached;
  return !result_.reached && tracing_.at && tracing_.at->process == number;
}

void TracedTree::Resume(pid_t pid, int signal) {
  (void)::ptrace(IsFollowed(NumberOf(pid)) ? PTRACE_SYSCALL : PTRACE_CONT, pid, nullptr, signal);
}

void TracedTree::OnStop(pid_t pid, int status) {
  const int number = NumberOf(pid);
  const int signal = WSTOPSIG(status);
  switch (status >> 16) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE: {
      // A process that was killed in this stop names no child, and kill(2) takes number 0 for the caller's
      // own group.
      unsigned long child = 0;
      if (::ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &child) == 0 && child != 0)
        (void)NumberOf(static_cast<pid_t>(child));
      return Resume(pid, 0);
    }
    case PTRACE_EVENT_EXEC:
      result_.processes.at(static_cast<std::size_t>(number)).program = ProgramOf(pid);
      if (number == 0) before_exec_ = false;
      return Resume(pid, 0);
    case PTRACE_EVENT_STOP:  // a new process, or PTRACE_INTERRUPT
      return Resume(pid, 0);
    default:
      if (signal == kSyscallStop) return OnCall(pid, number);
      return Resume(pid, signal);
  }
}

void TracedTree::OnCall(pid_t pid, int number) {
  __ptrace_syscall_info info{};
  (void)::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return Resume(pid, 0);
  if (tracing_.kill_before && EndsBefore(pid, {info.entry.nr, info.entry.args})) return;
  auto& calls = result_.processes.at(static_cast<std::size_t>(number)).calls;
  calls.push_back(static_cast<int>(info.entry.nr));
  if (!result_.reached && tracing_.at == CallPoint{number, static_cast<int>(calls.size())}) {
    result_.reached = true;
    result_.call = calls.back();
    if (tracing_.orphan && pid != first_) {
      result_.frozen = pid;  // it stays in this stop
      (void)::kill(first_, SIGKILL);
      return;
    }
    if (!tracing_.instead_of_kill) {
      (void)::kill(pid, SIGKILL);  // which ends this stop, too
      return;
    }
    tracing_.instead_of_kill();
  }
  if (tracing_.suppressed) {
    if (EraseNetlinkRequest(pid, info.entry.nr, info.entry.args, *tracing_.suppressed)) ++result_.suppressed;
  }
  Resume(pid, 0);
}

bool TracedTree::EndsBefore(pid_t pid, const SystemCall& call) {
  if (result_.reached) return false;
  auto what = ChangeBy(pid, call, tracing_.changes_below);
  if (!what || !tracing_.kill_before({++changes_, *std::move(what)})) return false;
  result_.reached = true;
  result_.call = static_cast<int>(call.number);
  (void)::kill(first_, SIGKILL);
  // A thread of the program dies before the call; a child continues by itself.
  Resume(pid, 0);
  return true;
}

void TracedTree::LetGo() {
  for (const auto& [pid, number] : live_) {
    if (pid == first_) continue;
    if (result_.frozen != 0 && pid == result_.frozen) {
      (void)::kill(pid, SIGSTOP);
      (void)::ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
      continue;
    }
    (void)::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
    int status = 0;
    // Waits until it stops and is detached, or has ended.
    while (::waitpid(pid, &status, kWaitFlags) == pid && WIFSTOPPED(status)) {
      const int signal = WSTOPSIG(status);
      const bool is_signal = status >> 16 == 0 && signal != kSyscallStop;
      if (::ptrace(PTRACE_DETACH, pid, nullptr, is_signal ? signal : 0) == 0) break;
    }
  }
  live_.clear();
}

}  // namespace railhead::crash
