// Which RDMA device and which GID a station has, so that it can ask and answer by RDMA.
//
// On a NIC with RDMA it is the PF's device: the kernel enters the addresses of all devices that stand on a PF
// into its GID table, whichever network namespace they are in (is_eth_port_of_netdev_filter in
// drivers/infiniband/core/roce_gid_mgmt.c), and what goes out from such a GID is the station's: its VLAN, its
// MAC address, its neighbours. On a rail with soft RoCE one is made on the station's device; it goes with it.
// Threads: any. Errors name the device; kUnavailable: not yet.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "deviceplugin/services/reachability/probe_endpoint.h"
#include "deviceplugin/services/reachability/rdma_echo.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

struct StationRdmaPlan {
  std::string device;        // RDMA device of the PF; "": it has none
  std::string soft_roce_on;  // the PF's name, on a rail with soft RoCE; else ""
  int traffic_class = 0;
  int service_level = 0;
};

// The station has its address. `lost`: RdmaEcho's.
Result<std::unique_ptr<RdmaEcho>> OpenStationRdma(Kernel& kernel, const Station& station,
                                                  const StationRdmaPlan& plan, std::function<void()> lost);

}  // namespace railhead
