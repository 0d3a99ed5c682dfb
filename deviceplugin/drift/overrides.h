// Variables in the environment of a pod's processes that win over its nccl.conf: NCCL's parser never
// replaces what a process has.
// Threads: any. Errors: kIo, kPermission. Needs the node's /proc and the right to read the pod's.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

struct Override {
  pid_t pid = 0;
  std::string variable;
  std::string value;    // the process's
  std::string in_file;  // what it hides
};

// Of lines of `conf`, those that differ. A process that has ended meanwhile has none.
Result<std::vector<Override>> FindOverrides(const NetNs& pod, const std::string& conf);

// Of one process: `environ` as in /proc/PID/environ.
std::vector<Override> OverridesIn(pid_t pid, const std::string& environ, const std::string& conf);

}  // namespace railhead
