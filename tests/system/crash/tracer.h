// Running a program under ptrace(2) and interfering with it at a chosen system call of
// a chosen process of its tree.
//
// Processes are numbered in the order in which they come into being: 0 is the program
// itself, 1 its first child (threads count as processes). The calls of process 0 are
// counted from 1 behind its execve, those of the others from their very first. A
// process that is killed at call N has finished N-1 calls; N itself has no effect. What
// process 0 leaves running goes on by itself, as when a runtime kills a plugin.
// Errors: kIo when a process cannot be made or traced.
// Threads: a trace belongs to the thread that runs it; several may trace at once. Call
// Adopt() first where what outlives a traced program is to be waited for.
// Source: ptrace(2); PTRACE_GET_SYSCALL_INFO needs Linux 5.3.
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

// A call by which the world outside of a process becomes another one (daemon_changes.h).
struct Change {
  int number = 0;    // from 1, of all processes together
  std::string what;  // "rename /run/railhead/health.json"
};

struct CallPoint {
  int process = 0;
  int call = 0;  // from 1

  auto operator<=>(const CallPoint&) const = default;
};

// Netlink requests that the kernel never gets, although it says that they are done: the
// way to plant a missing step from outside.
struct Suppressed {
  std::uint16_t message_type = 0;     // RTM_DELRULE, ...
  std::optional<int> with_attribute;  // of link messages: only those that have it (IFLA_VFINFO_LIST)
};

struct Tracing {
  std::optional<CallPoint> at;
  // Called there while the process stands before the call; empty: it is killed.
  std::function<void()> instead_of_kill;
  // Kill process 0 there and not the one that stands there, which is frozen behind that
  // call (SIGSTOP) when it is let go: TraceResult::frozen.
  bool orphan = false;
  std::optional<Suppressed> suppressed;
  // For programs of many threads, whose calls have no fixed order: shown every change below
  // `changes_below` before it happens; true: process 0 is killed there.
  std::function<bool(const Change&)> kill_before;
  std::string changes_below;
  // Told the program's process id before it runs.
  std::function<void(pid_t)> started;
  // Note the calls of all processes. Processes of which nothing is to be known run at
  // full speed.
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
  int suppressed = 0;    // how many requests were
  pid_t frozen = 0;      // Tracing::orphan: SIGCONT lets it go on

  [[nodiscard]] bool Succeeded() const { return status == 0; }
};

Result<TraceResult> Trace(const Command& command, const Tracing& tracing);

// A function of this program in a child instead of a program: its first call is the
// read() that waits for the tracer. It ends with what `work` returns.
Result<TraceResult> TraceFunction(const std::function<int()>& work, const Tracing& tracing);

// Orphans below this process become its children from now on.
void Adopt();
// Waits until no child of the calling process is left. kTimeout names one that is.
Result<void> AwaitOrphans(std::chrono::milliseconds limit);

// "sendto"; "call 999" where the name is not known.
std::string NameOfCall(int number);
// true: it changes nothing outside of its process, so that killing before it and behind
// it leave the same. Calls that are not known here count as changing something.
bool OnlyLooks(int number);

}  // namespace railhead::crash
