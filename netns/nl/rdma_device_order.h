// The order in which the kernel lists RDMA devices, and with it ibv_get_device_list().
//
// One question, whatever the number of devices: ports are not asked, which takes a firmware command
// each (RdmaApi::ListDevices does). Source: drivers/infiniband/core/device.c (ib_enum_all_devs).
// Threads: thread-safe. In the calling thread's network namespace. Needs no privilege.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

// Names in the order of the kernel's index. kUnsupported: it has no RDMA subsystem loaded.
Result<std::vector<std::string>> RdmaDeviceOrder();

}  // namespace railhead
