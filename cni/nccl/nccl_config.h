// All that a pod's stacks are told comes from one Handoff: nccl_conf.h, ucx_conf.h and stack_variables.h
// say it in the words of each.
// Threads: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/nccl/gid_selection.h"
#include "cni/nccl/nic.h"

namespace railhead {

// A variable and its value.
using HandoffLine = std::pair<std::string, std::string>;

struct Handoff {
  std::vector<HandoffNic> nics;  // in the order in which they are named
  GidSelection gids;
  std::vector<HandoffLine> paths;  // what the NICs' places ask of NCCL: NcclView::Variables()
  std::string socket_ifname;       // cluster network's interface in the pod; empty: unknown
  std::vector<HandoffLine> env;    // the fabric's own lines for NCCL; they stand for those of the same name
};

// What all NICs have the same value of.
std::optional<int> SharedValue(const std::vector<HandoffNic>& nics, std::optional<int> HandoffNic::*value);

// "AF_INET" or "AF_INET6", as NCCL and NVSHMEM call them.
std::string FamilyName(const GidSearch& search);

}  // namespace railhead
