#include "deviceplugin/services/reachability/probe_endpoint.h"

#include <linux/neighbour.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cni/fabric/fabric.h"
#include "netns/base/text.h"
#include "netns/nl/neighbours.h"
#include "netns/nl/netlink_route.h"
#include "netns/nl/vf_messages.h"

namespace railhead::reachability {
namespace {

using std::chrono::milliseconds;

// Of another user of the own address.
constexpr milliseconds kConflictProbe{300};
// Carrier of the new device follows that of the PF at once, by the kernel's link watch.
constexpr milliseconds kCarrier{500};
// The device's name in its namespace, where it is alone: that of a pod's would say more than it can.
constexpr const char* kDevice = "station";
// For each neighbour that the kernel still looks for: the first probes of a peer that is new, a large one
// among them. What strangers and peers that are gone ask for must not fill the echo server's send buffer.
constexpr std::uint32_t kNeighbourQueue = 32 << 10;

}  // namespace

Station::~Station() {
  // Moved from.
  if (ns_.fd() < 0) return;
  if (const auto route = OpenNetlinkRoute(ns_)) (void)(*route)->DeleteLink(link_);
}

Result<Station> Station::Open(Kernel& kernel, const NetNs& host, const StationPlan& plan) {
  Station station(plan, RH_TRY(NetNs::Make("of the station of " + plan.rail)));
  station.device_ = kDevice;
  UpperLink upper{kDevice, plan.vlan.value_or(0) > 0 ? plan.vlan : std::nullopt, {}, plan.vlan_qos};
  if (!upper.vlan) upper.mac = StationMac(plan.node, plan.rail);
  auto link_made = AddUpperLink(host, plan.lower, upper, station.ns_);
  if (!link_made && link_made.error().code == ErrorCode::kExists) {
    link_made.error().hint =
        "the host has a VLAN device of its own for it, which stands in the station's way";
  }
  station.link_ = RH_TRY(std::move(link_made));
  const auto route = RH_TRY(kernel.OpenRoute(station.ns_));
  LinkChange change;
  change.mtu = plan.mtu;
  // No addresses but the one that it is given.
  change.addr_gen_mode = AddrGenMode::kNone;
  RH_TRY_WRAP(route->ChangeLink(station.link_, change), "setting up the station of " + plan.rail);
  if (plan.address) {
    RH_TRY(LimitNeighbourQueue(station.ns_, station.link_, plan.address->address.Family(), kNeighbourQueue));
  }
  const auto link = RH_TRY(route->FindLink(station.link_));
  if (!link) return Fail(ErrorCode::kNotFound, "the station's device has gone");
  station.mtu_ = link->mtu;
  station.mac_ = link->mac;
  return station;
}

Result<std::optional<std::string>> Station::Settle(Kernel& kernel) {
  const auto route = RH_TRY(kernel.OpenRoute(ns_));
  auto link = RH_TRY(route->FindLink(link_));
  if (!link) return Fail(ErrorCode::kNotFound, "the station's device has gone");
  if (!link->up) {
    LinkChange up;
    up.up = true;
    RH_TRY(route->ChangeLink(link_, up));
  }
  if (!RH_TRY(route->WaitCarrier(link_, std::chrono::steady_clock::now() + kCarrier))) return "no carrier";
  if (!plan_.address) return std::nullopt;
  const auto addresses = RH_TRY(route->ListAddresses(link_));
  if (Contains(addresses, *plan_.address)) return std::nullopt;
  return TakeAddress(kernel, *route, *link);
}

Result<std::optional<std::string>> Station::TakeAddress(Kernel& kernel, RouteApi& route, const Link& link) {
  const IpAddress& address = plan_.address->address;
  if (const auto other = RH_TRY(Ask(kernel, address, kConflictProbe)))
    return "the station's address " + address.ToString() + " is in use by " + other->ToString();
  RH_TRY(route.AddAddress(link_, *plan_.address));
  RH_TRY(kernel.Announce(ns_, link, {address}));
  return std::nullopt;
}

Result<void> Station::FixNeighbours(Kernel& kernel, const std::map<IpAddress, MacAddress>& neighbours) {
  if (neighbours == fixed_) return {};
  const auto route = RH_TRY(kernel.OpenRoute(ns_));
  for (auto at = fixed_.begin(); at != fixed_.end();) {
    const auto& [address, mac] = *at;
    if (!neighbours.contains(address)) RH_TRY(route->DeleteNeighbour({address, mac, link_, NUD_PERMANENT}));
    at = neighbours.contains(address) ? std::next(at) : fixed_.erase(at);
  }
  for (const auto& [address, mac] : neighbours) {
    const auto known = fixed_.find(address);
    if (known != fixed_.end() && known->second == mac) continue;
    RH_TRY_WRAP(route->SetNeighbour({address, mac, link_, NUD_PERMANENT}),
                "entering the station " + address.ToString());
    fixed_[address] = mac;
  }
  return {};
}

// A probe for the address, as who would use it: its owner answers, whether we have an address or not.
Result<std::optional<MacAddress>> Station::Ask(Kernel& kernel, const IpAddress& neighbour,
                                               milliseconds budget) const {
  const auto found = RH_TRY(kernel.ProbeAddresses(ns_, {{link_, mac_, neighbour}}, budget));
  if (found.empty()) return std::nullopt;
  return found.front().other;
}

namespace {

// Names of RDMA devices are node-wide. Of a pod's VF: "rxe_pf0v3".
std::string SoftRoceName(const std::string& pf) {
  return "rxe_" + pf + "_station";
}

// One that is there already is ours of an earlier round, or of a railheadd that was killed and on its way
// out: whose GID it has tells.
Result<std::string> MakeSoftRoce(Kernel& kernel, const Station& station, const std::string& pf) {
  const std::string name = SoftRoceName(pf);
  const auto rdma = RH_TRY(kernel.OpenRdma(station.ns()));
  auto made = rdma->AddRxe(name, station.device());
  if (made || made.error().code == ErrorCode::kExists) return name;
  if (station.plan().vlan.value_or(0) > 0) made.error().hint = "the kernel has no soft RoCE on VLAN devices";
  return Fail(std::move(made.error()));
}

}  // namespace

Result<std::unique_ptr<RdmaEcho>> OpenStationRdma(Kernel& kernel, const Station& station,
                                                  const StationRdmaPlan& plan, std::function<void()> lost) {
  const IpPrefix& address = *station.plan().address;
  std::string name = plan.device;
  if (!plan.soft_roce_on.empty()) name = RH_TRY(MakeSoftRoce(kernel, station, plan.soft_roce_on));
  if (name.empty()) return Fail(ErrorCode::kNotFound, "its PF has no RDMA device");
  VerbsDevice device = RH_TRY(VerbsDevice::Open(name));
  if (const VerbsPort port = RH_TRY(device.Port()); !port.active)
    return Fail(ErrorCode::kUnavailable, "port 1 of " + name + " is in state " + port.state);
  const auto gids = RH_TRY(device.Gids());
  const auto own = std::ranges::find_if(gids, [&](const GidEntry& gid) {
    return gid.type == GidType::kRoceV2 && AddressOfGid(gid.gid) == address.address;
  });
  if (own == gids.end())
    return Fail(ErrorCode::kUnavailable, name + " has no RoCE v2 GID of " + address.address.ToString());
  const DatagramSettings settings{*own, plan.traffic_class, plan.service_level};
  return RdmaEcho::Start(RH_TRY(Datagrams::Open(std::move(device), settings)), std::move(lost));
}

}  // namespace railhead::reachability
