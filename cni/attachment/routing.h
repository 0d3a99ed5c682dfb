// Builds the routes and rules that send each rail's traffic through the pod's own NIC of that rail. Does not
// change the kernel.
//
// RoCE resolves a peer with the outgoing interface and the source address bound. Sockets bind the source
// address alone or nothing (reference: the kernel's drivers/infiniband/core/addr.c addr4_resolve). So each
// rail has a table of its own with the connected route and the gateway routes. One rule selects the table by
// source, another by outgoing interface. The main table has the gateway routes, too, so that unbound traffic
// finds a way. A lookup with the interface bound that finds no route counts as on-link, and the queue pair
// times out. Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/protocol/cni_result.h"
#include "netns/base/result.h"
#include "netns/nl/route.h"

namespace railhead::attachment {

inline constexpr std::uint32_t kRulePriorityFrom = 1000;
inline constexpr std::uint32_t kRulePriorityOif = 1001;
inline constexpr std::uint32_t kFirstMainMetric = 20'000;

struct GatewayRoute {
  IpPrefix destination;
  std::optional<IpAddress> gateway;  // nullopt: on the link
  std::optional<std::uint32_t> metric;
  std::optional<std::uint32_t> table;  // set by the IPAM plugin: the route is only in that table
  std::optional<std::uint32_t> mtu;
  std::optional<std::uint32_t> advmss;
  std::optional<RouteScope> scope;
};

// Addresses and routes of one NIC, from the IPAM plugin's result, the configuration and the rail.
struct Addressing {
  std::vector<IpPrefix> addresses;
  std::vector<std::optional<IpAddress>> gateways;  // one per address
  std::vector<GatewayRoute> routes;
  std::string dns;  // JSON, passed to the runtime
};

// kInvalid when a gateway is not on the link, or a route has none.
Result<Addressing> ResolveAddressing(const PluginConfig& config, const DevicePlan& device,
                                     const CniResult& ipam);

// The table to use: the preferred one, or the next that no rule of the pod uses.
// `preferred` 0: the first from 100 on.
std::uint32_t PickTable(const std::vector<Rule>& rules_of_pod, std::uint32_t preferred);

// The metric of the rail's routes in the main table. Where the cluster network has a route to the same
// prefix, its own one goes first. Its routes have metric 0 in IPv4, and 1024 in IPv6 (IP6_RT_PRIO_USER), also
// the default route of a router advertisement. Network managers give up to some thousands.
std::uint32_t MainMetric(std::uint32_t table);

std::vector<Route> RoutesFor(const Addressing& addressing, int link, std::uint32_t table);
// Empty without a table.
std::vector<Rule> RulesFor(const AttachedDevice& device);

// Stores addresses, routes and table of each device in the journal entry; `addressing` has one for each
// device.
Result<void> RecordAddressing(PodNetwork& network, const AttachPlan& plan,
                              const std::vector<Addressing>& addressing, JournalEntry& entry);

}  // namespace railhead::attachment
