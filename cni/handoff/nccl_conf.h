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
#include <utility>
#include <vector>

#include "cni/handoff/gid_selection.h"
#include "cni/handoff/nic.h"
#include "netns/base/result.h"

namespace railhead {

using NcclLine = std::pair<std::string, std::string>;

struct Handoff {
  std::vector<HandoffNic> nics;  // in the order that NCCL_IB_HCA names them
  GidSelection gids;
  std::vector<NcclLine> paths;  // what the NICs' places ask for: NcclView::Variables()
  std::string socket_ifname;    // cluster network's interface in the pod; empty: unknown
  std::vector<NcclLine> env;    // the fabric's own lines; they stand for those of the same name
};

// kInvalid when a value is too long for NCCL.
Result<std::string> NcclConf(const Handoff& handoff);

// NCCL_IB_GID_INDEX where NCCL is to search.
inline constexpr const char* kNcclSearches = "-1";

// The value of a line; an exact list without its '='. nullopt: there is none.
std::optional<std::string> ValueIn(const std::string& conf, const std::string& variable);

}  // namespace railhead
