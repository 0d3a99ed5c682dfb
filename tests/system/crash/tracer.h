// Runs a program under ptrace(2) and disturbs it at a chosen system call of a chosen process of its tree.
//
// Processes are numbered in the order of their start: 0 is the program itself, 1 its first child (threads
// count as processes). Calls count from 1: of process 0 after its execve, of the others from their start. A
// process that is killed at call N has finished N-1 calls; N itself has no effect. Processes that outlive
// process 0 continue by themselves, as when a runtime kills a plugin.
// Errors: kIo when a process cannot be made or traced.
// Threads: each trace has a thread of its own, which also runs the callbacks; several threads may trace at
// once. While one does, no other may wait for just any child: that would take the stops of adopted processes.
// Call Adopt() first if you will wait for processes that outlive a traced program. Source: ptrace(2);
// PTRACE_GET_SYSCALL_INFO needs Linux 5.3.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::crash {

struct Command {
  std::vector<std::string> arguments;  // the program's path first
  std::vector<std::string> environment;
  std::optional<std::string> input;  // nullopt: standard input and output are the caller's
  std::string errors;                // file that standard error is appended to; empty: the caller's
};

// A call that changes something outside the process (daemon_changes.h).
struct Change {
  int number = 0;    // from 1, of all processes together
  std::string what;  // "rename /run/railhead/health.json"
};

struct CallPoint {
  int process = 0;
  int call = 0;  // from 1

  auto operator<=>(const CallPoint&) const = default;
};

// Netlink requests that the kernel never executes, although it acknowledges them. This plants a missing step
// from outside.
struct Suppressed {
  std::uint16_t message_type = 0;     // RTM_DELRULE, ...
  std::optional<int> with_attribute;  // of link messages: only those with this attribute (IFLA_VFINFO_LIST)
};

struct Tracing {
  std::optional<CallPoint> at;
  // Runs while the process has stopped before the call; empty: kill the process.
  std::function<void()> instead_of_kill;
  // Kill process 0 at that point instead of the stopped process. The stopped process is released and frozen
  // (SIGSTOP) after that call: TraceResult::frozen.
  bool orphan = false;
  std::optional<Suppressed> suppressed;
  // For programs with many threads, whose calls have no fixed order. It gets every change below
  // `changes_below` before it happens. true: process 0 is killed there.
  std::function<bool(const Change&)> kill_before;
  std::string changes_below;
  // Gets the program's process id before the program runs.
  std::function<void(pid_t)> started;
  // Record the calls of all processes. Processes that need no record run at full speed.
  bool count = false;
};

struct ProcessTrace {
  std::string program;     // what it executed last, without directory; empty: it only forked
  std::vector<int> calls;  // numbers of its system calls, as far as they were followed
};

struct TraceResult {
  int status = 0;      // of process 0, as waitpid has it
  std::string output;  // its standard output
  std::vector<ProcessTrace> processes;
  bool reached = false;  // Tracing::at
  int call = -1;         // the system call there
  int suppressed = 0;    // how many requests were suppressed
  pid_t frozen = 0;      // Tracing::orphan: SIGCONT continues it

  [[nodiscard]] bool Succeeded() const { return status == 0; }
};

Result<TraceResult> Trace(const Command& command, const Tracing& tracing);

// Traces a function of this program in a child instead of a program. Its first call is the read() that waits
// for the tracer. The exit status is `work`'s return value.
Result<TraceResult> TraceFunction(const std::function<int()>& work, const Tracing& tracing);

// Orphans below this process become its children from now on.
void Adopt();
// Waits until the calling process has no child. kTimeout names a remaining one.
Result<void> AwaitOrphans(std::chrono::milliseconds limit);

// "sendto"; "call 999" for an unknown call.
std::string NameOfCall(int number);
// true: the call changes nothing outside its process, so killing before it or after it has the same result.
// Unknown calls count as changing something.
bool OnlyLooks(int number);

}  // namespace railhead::crash
