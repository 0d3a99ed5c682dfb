// What the handoff knows of one NIC of a pod.
// Threads: values.
#pragma once

#include <optional>
#include <string>

#include "netns/base/addresses.h"

namespace railhead {

struct HandoffNic {
  std::string rdma_device;
  IpAddress address;  // the one whose GID is to be used
  int gid_index = 0;  // of that address, RoCE v2, as read in the pod
  std::optional<int> traffic_class;
  std::optional<int> service_level;
};

}  // namespace railhead
