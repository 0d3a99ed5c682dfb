#include "deviceplugin/services/reachability/probe_endpoint.h"

#include <linux/neighbour.h>

#include <iterator>
#include <utility>

#include "cni/fabric/probe_endpoint_mac.h"
#include "netns/base/text.h"
#include "netns/nl/neighbour_queue.h"
#include "netns/nl/netlink_route.h"
#include "netns/nl/upper_links.h"

namespace railhead::reachability {
namespace {

using std::chrono::milliseconds;

// How long to wait for another user of the endpoint's address.
constexpr milliseconds kConflictProbe{300};
// The new device gets its carrier from the PF at once, by the kernel's link watch.
constexpr milliseconds kCarrier{500};
// The device's name in its namespace, where it is the only one.
constexpr const char* kDevice = "probe";
// Bytes that wait for each unresolved neighbour: the first probes to a new peer, with a large one. Answers to
// unknown hosts and to absent peers must not fill the echo server's send buffer.
constexpr std::uint32_t kNeighbourQueue = 32 << 10;

}  // namespace

ProbeEndpoint::~ProbeEndpoint() {
  // This object was moved from.
  if (ns_.fd() < 0) return;
  if (const auto route = OpenNetlinkRoute(ns_)) (void)(*route)->DeleteLink(link_);
}

Result<ProbeEndpoint> ProbeEndpoint::Open(Kernel& kernel, const NetNs& host, const ProbeEndpointPlan& plan) {
  ProbeEndpoint endpoint(plan, RH_TRY(NetNs::Make("of the probe endpoint of " + plan.rail)));
  endpoint.device_ = kDevice;
  const UpperLink upper{kDevice, plan.vlan.value_or(0) > 0 ? plan.vlan : std::nullopt,
                        ProbeEndpointMac(plan.node, plan.rail), plan.vlan_qos};
  auto link_made = AddUpperLink(host, plan.lower, upper, endpoint.ns_);
  if (!link_made && link_made.error().code == ErrorCode::kExists) {
    link_made.error().hint = "the host already has a device for this VLAN on the PF: remove it";
  }
  endpoint.link_ = RH_TRY(std::move(link_made));
  const auto route = RH_TRY(kernel.OpenRoute(endpoint.ns_));
  LinkChange change;
  change.mtu = plan.mtu;
  // No addresses but the probe address.
  change.addr_gen_mode = AddrGenMode::kNone;
  RH_TRY_WRAP(route->ChangeLink(endpoint.link_, change), "setting up the probe endpoint of " + plan.rail);
  if (plan.address) {
    RH_TRY(
        LimitNeighbourQueue(endpoint.ns_, endpoint.link_, plan.address->address.Family(), kNeighbourQueue));
  }
  const auto link = RH_TRY(route->FindLink(endpoint.link_));
  if (!link) return Fail(ErrorCode::kNotFound, "the device of the probe endpoint is gone");
  endpoint.mtu_ = link->mtu;
  endpoint.mac_ = link->mac;
  return endpoint;
}

Result<std::optional<std::string>> ProbeEndpoint::Settle(Kernel& kernel) {
  const auto route = RH_TRY(kernel.OpenRoute(ns_));
  auto link = RH_TRY(route->FindLink(link_));
  if (!link) return Fail(ErrorCode::kNotFound, "the device of the probe endpoint is gone");
  if (!link->up) {
    LinkChange up;
    up.up = true;
    RH_TRY(route->ChangeLink(link_, up));
  }
  if (!RH_TRY(route->WaitCarrier(link_, std::chrono::steady_clock::now() + kCarrier))) return "no carrier";
  if (!plan_.address) return std::nullopt;
  const auto addresses = RH_TRY(route->ListAddresses(link_));
  if (Contains(addresses, *plan_.address, &LinkAddress::prefix)) return std::nullopt;
  return TakeAddress(kernel, *route, *link);
}

Result<std::optional<std::string>> ProbeEndpoint::TakeAddress(Kernel& kernel, RouteApi& route,
                                                              const Link& link) {
  const IpAddress& address = plan_.address->address;
  const auto others = RH_TRY(kernel.ProbeAddresses(ns_, {{link_, mac_, address}}, kConflictProbe));
  if (!others.empty())
    return "the probe address " + address.ToString() + " is in use by " + others.front().other.ToString();
  RH_TRY(route.AddAddress(link_, *plan_.address));
  for (const IpPrefix& destination : plan_.routes) {
    Route behind;
    behind.destination = destination;
    behind.gateway = plan_.gateway;
    behind.link = link_;
    RH_TRY_WRAP(route.AddRoute(behind),
                "adding the route of the probe endpoint to " + destination.ToString());
  }
  RH_TRY(kernel.Announce(ns_, link, {address}));
  return std::nullopt;
}

Result<void> ProbeEndpoint::SetPermanentNeighbours(Kernel& kernel,
                                                   const std::map<IpAddress, MacAddress>& neighbours) {
  if (neighbours == permanent_) return {};
  const auto route = RH_TRY(kernel.OpenRoute(ns_));
  for (auto at = permanent_.begin(); at != permanent_.end();) {
    const auto& [address, mac] = *at;
    if (!neighbours.contains(address)) RH_TRY(route->DeleteNeighbour({address, mac, link_, NUD_PERMANENT}));
    at = neighbours.contains(address) ? std::next(at) : permanent_.erase(at);
  }
  for (const auto& [address, mac] : neighbours) {
    const auto known = permanent_.find(address);
    if (known != permanent_.end() && known->second == mac) continue;
    RH_TRY_WRAP(route->SetNeighbour({address, mac, link_, NUD_PERMANENT}),
                "adding the neighbour entry of probe address " + address.ToString());
    permanent_[address] = mac;
  }
  return {};
}

Result<std::optional<MacAddress>> ProbeEndpoint::ResolveRouter(Kernel& kernel, const IpAddress& router,
                                                               milliseconds budget) const {
  const ProbeTarget target{.link = link_, .mac = mac_, .address = router, .of_router = true};
  const auto found = RH_TRY(kernel.ProbeAddresses(ns_, {target}, budget));
  return found.empty() ? std::nullopt : std::optional(found.front().other);
}

}  // namespace railhead::reachability
