// nccl.conf: the NCCL configuration for NCCL, RCCL and programs that read their variables.
//
// NCCL's parser (src/misc/param.cc) reads NAME=VALUE lines, trims nothing and cuts a value at 1,023 bytes.
// The first line of a name wins, and never overrides the process's environment. "==" begins an exact list.
// Only releases since 2.26.2 read comments, so the file has none. A release ignores variables that it does
// not know, so one text serves all releases. docs/operate/nccl.md lists the first release of each variable.
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "cni/nccl/gid_selection.h"
#include "cni/nccl/nccl_config.h"
#include "netns/base/result.h"

namespace railhead::nccl {

// kInvalid when a value is too long for NCCL.
Result<std::string> NcclConf(const NcclConfig& config);

// The value of a line; of an exact list without its '='. nullopt: no such line.
std::optional<std::string> ValueIn(const std::string& conf, const std::string& variable);

// The GID selection in an nccl.conf that Railhead wrote: an index or a search. nullopt: neither.
std::optional<GidSelection> GidsIn(const std::string& conf);

}  // namespace railhead::nccl
