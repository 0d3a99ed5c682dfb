// Station: where a node probes one of its rails from, and answers others.
//
// A network namespace of its own with one device on the rail's PF: the rail's VLAN, or a macvlan where the
// rail has none, with the station's address, if it has one. So nobody on the rail reaches the host, the
// host's routes, ARP and rp_filter settings do not matter, and the kernel does the rest (neighbours, IPv6,
// fragmentation). The namespace lives by this object's handle: a railheadd that is killed leaves nothing.
// While it is there the PF cannot be moved into a pod: rails whose PF is given out whole have none.
//
// Ownership: borrows the kernel, owns the namespace. Threads: one at a time.
// Needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN. Errors: what the kernel refused.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "deviceplugin/services/reachability/rdma_echo.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::reachability {

struct StationPlan {
  std::string node;
  std::string rail;
  int lower = 0;  // the PF's index in the host's namespace
  std::optional<int> vlan;
  std::optional<int> mtu;
  std::optional<IpPrefix> address;  // with the subnet's length
  int vlan_qos = 0;                 // priority in the VLAN's tag

  bool operator==(const StationPlan&) const = default;
};

class Station {
 public:
  static Result<Station> Open(Kernel& kernel, const NetNs& host, const StationPlan& plan);
  // Removes its device: the kernel takes its time over a namespace that nobody holds any more, and the PF
  // bears each VLAN and each MAC once.
  ~Station();
  Station(Station&&) = default;
  Station& operator=(Station&&) = delete;
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // Up and with its address, which it has looked for first: nobody else may have it. nullopt: it is; else
  // why not, for people. kNotFound: its device is gone, and this is of no use any more.
  Result<std::optional<std::string>> Settle(Kernel& kernel);
  // Stations of others whose MAC addresses are known: the kernel gets permanent entries, which no forged
  // answer changes. In the place of those of the call before.
  Result<void> FixNeighbours(Kernel& kernel, const std::map<IpAddress, MacAddress>& neighbours);
  // ARP or neighbour discovery; also from a station without an address. nullopt: nobody answers.
  Result<std::optional<MacAddress>> Ask(Kernel& kernel, const IpAddress& neighbour,
                                        std::chrono::milliseconds budget) const;

  [[nodiscard]] const StationPlan& plan() const { return plan_; }
  [[nodiscard]] const NetNs& ns() const { return ns_; }
  [[nodiscard]] const std::string& device() const { return device_; }
  [[nodiscard]] int mtu() const { return mtu_; }

 private:
  Station(StationPlan plan, NetNs ns) : plan_(std::move(plan)), ns_(std::move(ns)) {}
  Result<std::optional<std::string>> TakeAddress(Kernel& kernel, RouteApi& route, const Link& link);

  StationPlan plan_;
  NetNs ns_;
  std::string device_;
  int link_ = 0;
  int mtu_ = 0;
  MacAddress mac_;
  std::map<IpAddress, MacAddress> fixed_;  // that the kernel has
};

// Which RDMA device and which GID a station has, so that it can ask and answer by RDMA.
//
// On a NIC with RDMA it is the PF's device: the kernel enters the addresses of all devices that stand on a PF
// into its GID table, whichever network namespace they are in (is_eth_port_of_netdev_filter in
// drivers/infiniband/core/roce_gid_mgmt.c), and what goes out from such a GID is the station's: its VLAN, its
// MAC address, its neighbours. On a rail with soft RoCE one is made on the station's device; it goes with it.
// Threads: any. Errors name the device; kUnavailable: not yet.

struct StationRdmaPlan {
  std::string device;        // RDMA device of the PF; "": it has none
  std::string soft_roce_on;  // the PF's name, on a rail with soft RoCE; else ""
  int traffic_class = 0;
  int service_level = 0;
};

// The station has its address. `lost`: RdmaEcho's.
Result<std::unique_ptr<RdmaEcho>> OpenStationRdma(Kernel& kernel, const Station& station,
                                                  const StationRdmaPlan& plan, std::function<void()> lost);

}  // namespace railhead::reachability
