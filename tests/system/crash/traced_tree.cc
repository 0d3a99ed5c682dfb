#include "tests/system/crash/traced_tree.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "netns/base/files.h"
#include "tests/system/crash/netlink_eraser.h"

namespace railhead::crash {
namespace {

// Only this thread's children and tracees, so that threads can trace at the same time.
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
  // Stopped once, so that it is resumed with its calls followed.
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
      // A process that was killed in this stop names no child, and kill(2) takes number 0 for the own group.
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
  // A thread of the program dies before the call; a child goes on by itself.
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
    // Until it stops and is detached, or is gone.
    while (::waitpid(pid, &status, kWaitFlags) == pid && WIFSTOPPED(status)) {
      const int signal = WSTOPSIG(status);
      const bool is_signal = status >> 16 == 0 && signal != kSyscallStop;
      if (::ptrace(PTRACE_DETACH, pid, nullptr, is_signal ? signal : 0) == 0) break;
    }
  }
  live_.clear();
}

}  // namespace railhead::crash
