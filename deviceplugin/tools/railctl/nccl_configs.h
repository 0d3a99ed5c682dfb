// The NCCL configurations of this node's pods, and what differs from them: for `railctl nccl`.
//
// An Override is a variable in the environment of a pod's process that overrides the NCCL configuration. The
// files of NCCL and UCX never override the environment. A process can change the variables that it was
// started with.
// Ownership: values. Threads: as Kernel. Errors: kNotFound when no pod matches; kIo, kPermission. Overrides
// need the node's /proc. A process of another user shows its environment to CAP_DAC_READ_SEARCH only, which
// railheadd's container has not.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/kernel.h"
#include "netns/ns/netns.h"

namespace railhead::railctl {

// Configured lines NAME=value, and the file or variables that have them.
struct ConfiguredLines {
  std::string where;  // "nccl.conf"
  std::string text;
};

struct Override {
  pid_t pid = 0;
  std::string variable;
  std::string value;       // the process's
  std::string configured;  // the value that it overrides
  std::string where;

  static void List(auto& f) {
    f("pid", &Override::pid);
    f("variable", &Override::variable);
    f("value", &Override::value);
    f("configured", &Override::configured);
    f("where", &Override::where);
  }
};

struct Overrides {
  std::vector<Override> found;
  std::vector<pid_t> unread;  // processes whose environment this one may not read
};

// The variables of processes that differ from `configured`. A process that ends during the call has none.
Result<Overrides> FindOverrides(const NetNs& pod, const std::vector<ConfiguredLines>& configured);

// Of one process: `environ` as in /proc/PID/environ.
std::vector<Override> OverridesIn(pid_t pid, const std::string& environ, const ConfiguredLines& configured);

// The NCCL configuration of one sandbox.
struct SandboxNcclConfig {
  std::string container;
  std::string pod;  // "namespace/name"; "": the runtime did not name it
  std::string netns;
  std::vector<JournalEntry> attachments;
  std::string nccl_conf;         // "": no such file
  std::string ucx_conf;          // likewise
  bool topology = false;         // there is a topology file
  std::vector<std::string> env;  // "NAME=value", from the CDI specs
};

// `which`: as FindSubject() takes it; "": all. Only attachments that have an NCCL configuration, or should
// have one.
Result<std::vector<SandboxNcclConfig>> FindNcclConfigs(const Root& root, const std::string& which);

struct NcclConfigVerdict {
  std::vector<std::string> differences;  // empty: the NICs match
  Overrides overrides;
};

Result<NcclConfigVerdict> VerifyNcclConfig(const Root& root, Kernel& kernel, const SandboxNcclConfig& config);

}  // namespace railhead::railctl
