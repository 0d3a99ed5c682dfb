// The NCCL configuration of a pod. NcclConf() writes it as nccl.conf; ucx_conf.h and stack_variables.h write
// the file and the variables of other stacks. Threads: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/nccl/gid_selection.h"
#include "cni/nccl/nic_config.h"

namespace railhead::nccl {

// A variable and its value.
using Variable = std::pair<std::string, std::string>;

struct NcclConfig {
  std::vector<NicConfig> nics;  // in the order of NCCL_IB_HCA
  GidSelection gids;
  std::vector<Variable> hardware;  // variables that the NICs' places and kinds require
  std::string socket_ifname;       // cluster network's interface in the pod; empty: unknown
  std::vector<Variable> env;       // the fabric's own lines, which replace those of the same name
};

// The value if all NICs have the same, otherwise nullopt.
std::optional<int> SharedValue(const std::vector<NicConfig>& nics, std::optional<int> NicConfig::*value);

// "AF_INET" or "AF_INET6", as NCCL and NVSHMEM call them.
std::string FamilyName(const GidSearch& search);

}  // namespace railhead::nccl
