// nccl.conf: what NCCL, RCCL and those that read their variables are told about the pod's NICs.
//
// NCCL's parser (src/misc/param.cc) takes NAME=VALUE lines, trims nothing, cuts
// a value at 1,023 bytes, lets the first occurrence win and never overrides the
// process's environment; "==" begins an exact list. Comments are known since 2.26.2 only, so
// there are none. Variables that a release does not know are of no consequence to it, so one text
// serves all: what each was first known to is in docs/handoff.md.
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "cni/nccl/nccl_config.h"
#include "netns/base/result.h"

namespace railhead {

// kInvalid when a value is too long for NCCL.
Result<std::string> NcclConf(const Handoff& handoff);

// The value of a line; an exact list without its '='. nullopt: there is none.
std::optional<std::string> ValueIn(const std::string& conf, const std::string& variable);

// What a file of ours says of GIDs: an index, or the search that NCCL makes. nullopt: neither.
std::optional<GidSelection> GidsIn(const std::string& conf);

}  // namespace railhead
