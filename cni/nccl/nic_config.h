// The NCCL configuration of one NIC of a pod.
// Threads: values.
#pragma once

#include <optional>
#include <string>

#include "netns/base/addresses.h"

namespace railhead::nccl {

struct NicConfig {
  std::string rdma_device;
  IpAddress address;  // NCCL uses the GID of this address
  int gid_index = 0;  // of that address, RoCE v2, as read in the pod
  std::optional<int> traffic_class;
  std::optional<int> service_level;
};

}  // namespace railhead::nccl
