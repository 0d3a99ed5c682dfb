// What pods were handed over, and how it stands, for `railctl handoff`.
//
// Ownership: values. Threads: as Kernel. Errors: kNotFound when nothing is what was asked for.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/ns/netns.h"

namespace railhead {

// Variables in the environment of a pod's processes that win over what the pod was told: NCCL's and
// UCX's files never replace what a process has, and a process can change what it was started with.
// Threads: any. Errors: kIo, kPermission. Needs the node's /proc and the right to read the pod's.

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

// Of one sandbox.
struct SandboxHandoff {
  std::string container;
  std::string pod;  // "namespace/name"; "": the runtime did not say
  std::string netns;
  std::vector<JournalEntry> attachments;
  std::string nccl_conf;         // "": there is no such file
  std::string ucx_conf;          // likewise
  bool topology = false;         // there is a topology file
  std::vector<std::string> env;  // "NAME=value": what CDI gives the containers
};

// `which`: a container's id or the beginning of one, a pod as "namespace/name" or by its UID, the path
// of a network namespace; "": all. Only attachments that have a handoff, or should.
Result<std::vector<SandboxHandoff>> FindHandoffs(const Root& root, const std::string& which);

struct HandoffVerdict {
  std::vector<std::string> differences;  // in words; empty: as it was told
  std::vector<Override> overrides;
};

Result<HandoffVerdict> VerifyHandoff(const Root& root, Kernel& kernel, const SandboxHandoff& handoff);

}  // namespace railhead
