// The tracer's state machine: one tree of traced processes, from seizing the first process to its end.
// Internal to tests/system/crash; see tracer.h. Threads: one.
#pragma once

#include <sys/types.h>

#include <map>

#include "netns/base/result.h"
#include "tests/system/crash/daemon_changes.h"
#include "tests/system/crash/tracer.h"

namespace railhead::crash {

class TracedTree {
 public:
  explicit TracedTree(const Tracing& tracing) : tracing_(tracing) {}

  // `pid` is a child that waits. `executes`: follow it from its execve on; otherwise at once. A child that
  // cannot be traced is killed.
  Result<void> Seize(pid_t pid, bool executes);

  // Follows the tree until process 0 has ended, and then detaches the other processes.
  TraceResult Follow();

 private:
  int NumberOf(pid_t pid);
  [[nodiscard]] bool IsFollowed(int number) const;
  void Resume(pid_t pid, int signal);
  void OnStop(pid_t pid, int status);
  void OnCall(pid_t pid, int number);
  // Whether this call is the chosen one, at which the trace ends.
  bool EndsBefore(pid_t pid, const SystemCall& call);
  void LetGo();

  const Tracing& tracing_;
  TraceResult result_;
  std::map<pid_t, int> live_;  // their numbers
  pid_t first_ = 0;
  bool before_exec_ = false;
  int changes_ = 0;
};

}  // namespace railhead::crash
