// What pods were handed over, and how it stands, for `railctl handoff`.
//
// Ownership: values. Threads: as Kernel. Errors: kNotFound when nothing is what was asked for.
#pragma once

#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/tools/railctl/overrides.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

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
