// The RDMA device and GID of a probe endpoint, for probes by RDMA.
//
// On a NIC with RDMA it is the PF's device. The kernel enters the addresses of all devices on a PF into its
// GID table, from every network namespace (is_eth_port_of_netdev_filter in
// drivers/infiniband/core/roce_gid_mgmt.c). Packets from such a GID have the endpoint's VLAN, MAC address and
// neighbours. On a rail with soft RoCE the endpoint's own device gets an RDMA device, which disappears with
// it.
// Threads: any. Errors name the device; kUnavailable: not yet.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "deviceplugin/services/reachability/probe_endpoint.h"
#include "deviceplugin/services/reachability/rdma_echo.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::reachability {

struct EndpointRdmaPlan {
  std::string device;        // RDMA device of the PF; "": it has none
  std::string soft_roce_on;  // the PF's name, on a rail with soft RoCE; else ""
  int traffic_class = 0;
  int service_level = 0;
};

// After Settle(). `lost`: RdmaEcho's.
Result<std::unique_ptr<RdmaEcho>> OpenEndpointRdma(Kernel& kernel, const ProbeEndpoint& endpoint,
                                                   const EndpointRdmaPlan& plan, std::function<void()> lost);

}  // namespace railhead::reachability
