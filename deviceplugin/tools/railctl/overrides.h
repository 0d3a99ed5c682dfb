// Variables in the environment of a pod's processes that win over what the pod was told: NCCL's and
// UCX's files never replace what a process has, and a process can change what it was started with.
// Threads: any. Errors: kIo, kPermission. Needs the node's /proc and the right to read the pod's.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// Lines NAME=value, and where they are told.
struct ToldLines {
  std::string where;  // "nccl.conf"
  std::string text;
};

struct Override {
  pid_t pid = 0;
  std::string variable;
  std::string value;  // the process's
  std::string told;   // what it hides
  std::string where;
};

// Of lines of `told`, those that differ. A process that has ended meanwhile has none.
Result<std::vector<Override>> FindOverrides(const NetNs& pod, const std::vector<ToldLines>& told);

// Of one process: `environ` as in /proc/PID/environ.
std::vector<Override> OverridesIn(pid_t pid, const std::string& environ, const ToldLines& told);

}  // namespace railhead
