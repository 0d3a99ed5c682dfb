// ProbeEndpoint: the network namespace and address from which a node probes a rail and answers probes.
//
// The namespace has one device on the rail's PF: the rail's VLAN, or a macvlan on a rail without one. The
// device has the MAC that all nodes know (ProbeEndpointMac in cni/fabric/probe_endpoint_mac.h), and the probe
// address, if the rail gives this node one. So hosts of the rail cannot reach this host through it, and the
// host's routes, ARP and rp_filter settings do not matter. The kernel does the rest (neighbours, IPv6,
// fragmentation). This object's handle keeps the namespace: after a kill nothing is left.
// While it exists, the PF cannot move to a pod. So a rail whose PFs go to pods has no endpoint.
//
// Ownership: borrows the kernel, owns the namespace. Threads: one at a time.
// Needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN. Errors: the kernel's refusals.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::reachability {

struct ProbeEndpointPlan {
  std::string node;
  std::string rail;
  int lower = 0;  // the PF's index in the host's namespace
  std::optional<int> vlan;
  std::optional<int> mtu;
  std::optional<IpPrefix> address;   // with the length of the node's network
  int vlan_qos = 0;                  // priority in the VLAN's tag
  std::optional<IpAddress> gateway;  // of that network
  std::vector<IpPrefix> routes;      // behind it

  bool operator==(const ProbeEndpointPlan&) const = default;
};

class ProbeEndpoint {
 public:
  static Result<ProbeEndpoint> Open(Kernel& kernel, const NetNs& host, const ProbeEndpointPlan& plan);
  // Removes the device. The kernel removes the namespace only some time later, and a PF takes each VLAN and
  // each MAC only once.
  ~ProbeEndpoint();
  ProbeEndpoint(ProbeEndpoint&&) = default;
  ProbeEndpoint& operator=(ProbeEndpoint&&) = delete;
  ProbeEndpoint(const ProbeEndpoint&) = delete;
  ProbeEndpoint& operator=(const ProbeEndpoint&) = delete;

  // Brings the device up and adds the address, unless another host answers for it. nullopt: ready. Otherwise
  // the reason, for people. kNotFound: the device is gone, and this object is useless.
  Result<std::optional<std::string>> Settle(Kernel& kernel);
  // Permanent neighbour entries for endpoints of other nodes, which no forged answer changes. They replace
  // those of the call before.
  Result<void> SetPermanentNeighbours(Kernel& kernel, const std::map<IpAddress, MacAddress>& neighbours);
  // By ARP or neighbour discovery, also without an address of our own. nullopt: no answer.
  Result<std::optional<MacAddress>> ResolveRouter(Kernel& kernel, const IpAddress& router,
                                                  std::chrono::milliseconds budget) const;

  [[nodiscard]] const ProbeEndpointPlan& plan() const { return plan_; }
  [[nodiscard]] const NetNs& ns() const { return ns_; }
  [[nodiscard]] const std::string& device() const { return device_; }
  [[nodiscard]] int mtu() const { return mtu_; }

 private:
  ProbeEndpoint(ProbeEndpointPlan plan, NetNs ns) : plan_(std::move(plan)), ns_(std::move(ns)) {}
  Result<std::optional<std::string>> TakeAddress(Kernel& kernel, RouteApi& route, const Link& link);

  ProbeEndpointPlan plan_;
  NetNs ns_;
  std::string device_;
  int link_ = 0;
  int mtu_ = 0;
  MacAddress mac_;
  std::map<IpAddress, MacAddress> permanent_;  // the entries that the kernel has
};

}  // namespace railhead::reachability
