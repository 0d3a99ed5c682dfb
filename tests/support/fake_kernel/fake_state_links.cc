// FakeState: links, moves between namespaces, VF settings.
#include <linux/if.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "tests/support/fake_kernel/fake_state.h"

namespace railhead::testing {
namespace {

// dev_valid_name()
bool IsValidName(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return c == '/' || c == ':' || std::isspace(c) != 0; });
}

}  // namespace

void FakeState::GoDown(FakeNetdev& netdev) {
  if (netdev.link.up) {
    netdev.link.up = false;
    // IPv6 addresses and routes over the link are removed; IPv4 addresses stay.
    const auto addresses = netdev.addresses;
    for (const auto& address : addresses) {
      if (address.address.IsV6()) DropAddress(netdev, address);
    }
  }
  FakeNamespace& ns = *Namespace(netdev.ns);
  std::erase_if(ns.routes, [&](const Route& route) { return route.link == netdev.link.index; });
  std::erase_if(ns.neighbours, [&](const Neighbour& one) { return one.link == netdev.link.index; });
}

void FakeState::GoUp(FakeNetdev& netdev) {
  if (netdev.link.up) return;
  netdev.link.up = true;
  for (const auto& address : netdev.addresses) AddConnectedRoute(netdev, address);
  const AddrGenMode mode_now = netdev.link.addr_gen_mode.value_or(AddrGenMode::kEui64);
  if (mode_now == AddrGenMode::kNone || netdev.link.name == "lo" || !HasIpv6(netdev)) return;
  // With a stable or random identifier, the address differs from the default GID.
  IpAddress local = LinkLocalOf(netdev.link.mac);
  if (mode_now != AddrGenMode::kEui64) {
    local = IpAddress::Parse("fe80::5ab1:e000:0:0")->Plus(static_cast<std::uint64_t>(netdev.id));
  }
  netdev.addresses.push_back({local, 64});
  ForEachRdmaOn(netdev.id, [&](FakeRdma& rdma) { rdma.gids.Add(netdev.id, local, gid_delay); });
}

void FakeState::RefillGids(FakeNetdev& netdev) {
  ForEachRdmaOn(netdev.id, [&](FakeRdma& rdma) {
    rdma.gids.Clear();
    rdma.gids.AddDefaults(netdev.id, netdev.link.mac);
    for (const bool v6 : {false, true}) {
      for (const auto& address : netdev.addresses) {
        if (address.address.IsV6() == v6) rdma.gids.Add(netdev.id, address.address, gid_delay);
      }
    }
  });
}

int FakeState::Rename(FakeNetdev& netdev, const std::string& name) {
  if (name == netdev.link.name) return 0;
  if (netdev.link.up) return EBUSY;  // before Linux 6.2, which Debian 12 has
  if (!IsValidName(name)) return EINVAL;
  if (Find(netdev.ns, name) != nullptr) return EEXIST;
  netdev.link.name = name;
  Namespace(netdev.ns)->uevents.push_back({netdev.id, "move " + name});
  return 0;
}

int FakeState::Change(FakeNetdev& netdev, const LinkChange& change) {
  if (change.mac) {
    FakeFunction* function = Function(netdev.bdf);
    // While the PF has set a MAC, it refuses the VF's own, but from a VF that it trusts. The VF's driver then
    // uses the MAC that it read when it was bound.
    const bool fixed = function != nullptr && function->driver.mac_at_bind && function->state &&
                       !MacOf(*function->state).IsZero();
    const bool trusted = fixed && function->state->trust.value_or(false);
    if (fixed && !trusted && *change.mac != netdev.link.permanent_mac) return EADDRNOTAVAIL;
    if (change.mac->IsMulticast() || change.mac->IsZero()) return EADDRNOTAVAIL;
    if (trusted) function->state->mac = *change.mac;
    if (netdev.link.mac != *change.mac) {
      netdev.link.mac = *change.mac;
      RefillGids(netdev);
    }
  }
  if (change.mtu) {
    if (*change.mtu < 68 || *change.mtu > netdev.max_mtu) return EINVAL;
    netdev.link.mtu = *change.mtu;
  }
  if (change.name) {
    if (const int error = Rename(netdev, *change.name); error != 0) return error;
  }
  if (change.alias) {
    if (change.alias->size() > 255) return ERANGE;
    netdev.link.alias = *change.alias;
  }
  if (change.tx_queue_len) netdev.link.tx_queue_len = *change.tx_queue_len;
  if (change.promiscuous) netdev.link.promiscuous = *change.promiscuous;
  if (change.all_multicast) netdev.link.all_multicast = *change.all_multicast;
  // RouteApi: settings work before the link goes up.
  if (change.addr_gen_mode) netdev.link.addr_gen_mode = change.addr_gen_mode;
  for (const auto& [key, value] : change.ipv4) netdev.ipv4[key] = value;
  if (change.up) *change.up ? GoUp(netdev) : GoDown(netdev);
  return 0;
}

// Of any length below ALTIFNAMSIZ and of any form.
int FakeState::AddAltName(FakeNetdev& netdev, const std::string& name) {
  if (release < kAltNames) return EOPNOTSUPP;  // rtnetlink_rcv_msg(): nobody has this message
  if (name.empty() || name.size() >= 128) return ERANGE;
  if (Find(netdev.ns, name) != nullptr) return EEXIST;
  netdev.link.alt_names.push_back(name);
  return 0;
}

int FakeState::DeleteAltName(FakeNetdev& netdev, const std::string& name) {
  if (release < kAltNames) return EOPNOTSUPP;
  const FakeNetdev* owner = Find(netdev.ns, name);
  if (owner == nullptr) return ENOENT;
  if (owner->id != netdev.id || name == netdev.link.name) return EINVAL;
  std::erase(netdev.link.alt_names, name);
  return 0;
}

// A device that changes its namespace is down, without addresses, sysctls, qdiscs, DCB applications
// (dcbnl_netdevice_event) and soft RoCE device. Its new namespace hears of it under the name that it arrives
// with.
void FakeState::Enter(FakeNetdev& netdev, const std::string& ns, const std::string& name) {
  GoDown(netdev);
  const auto addresses = netdev.addresses;
  for (const auto& address : addresses) DropAddress(netdev, address);
  std::erase_if(rdmas, [&](const FakeRdma& rdma) { return rdma.rxe && rdma.netdev == netdev.id; });
  netdev.link.master = 0;
  netdev.link.addr_gen_mode = default_addr_gen_mode;
  for (const char* flushed : {"qdisc.root", "qdisc.ingress", "dcb.applications"}) {
    const auto found = netdev.device.values.find(flushed);
    if (found != netdev.device.values.end()) found->second.clear();
  }
  FakeNamespace& to = *Namespace(ns);
  if (Find(ns, netdev.link.index) != nullptr) netdev.link.index = to.next_index++;
  to.next_index = std::max(to.next_index, netdev.link.index + 1);
  netdev.ns = ns;
  netdev.link.name = name;
  to.uevents.push_back({netdev.id, "add " + name});
  ResetSysctls(netdev);
  RefillGids(netdev);
}

int FakeState::Move(FakeNetdev& netdev, const std::string& target, const std::string& name,
                    std::optional<int> mtu) {
  if (name.size() >= IFNAMSIZ) return ERANGE;  // the attribute's policy
  if (target != netdev.ns) {
    std::string arrives_as = netdev.link.name;
    // The kernel uses the new name only if the target namespace already has the present one.
    if (Find(target, arrives_as) != nullptr) {
      if (!IsValidName(name)) return EINVAL;
      if (Find(target, name) != nullptr) return EEXIST;
      arrives_as = name;
    }
    for (const std::string& other : netdev.link.alt_names) {
      if (Find(target, other) != nullptr) return EEXIST;
    }
    Enter(netdev, target, arrives_as);
  }
  LinkChange rest;
  rest.mtu = mtu;
  rest.name = name;
  return Change(netdev, rest);
}

namespace {

// The driver's answer to one setting; 0: it accepts it.
int Refusal(const FakeDriver& /*driver*/, const MacAddress& mac) {
  return mac.IsMulticast() ? EINVAL : 0;
}
int Refusal(const FakeDriver& driver, const VfVlan& vlan) {
  if (vlan.id < 0 || vlan.id > 4094 || vlan.qos < 0 || vlan.qos > 7) return EINVAL;
  if (vlan.proto == kVlanProto8021q || (vlan.proto == kVlanProto8021ad && driver.s_vlan)) return 0;
  return EPROTONOSUPPORT;
}
int Refusal(const FakeDriver& driver, const VfRate& rate) {
  if (rate.min != 0 && !driver.min_tx_rate) return EINVAL;
  return rate.max != 0 && rate.min > rate.max ? EINVAL : 0;
}
int Refusal(const FakeDriver& driver, VfLinkState /*state*/) {
  return driver.link_state ? 0 : EOPNOTSUPP;
}
int Refusal(const FakeDriver& /*driver*/, bool /*on*/) {
  return 0;
}

}  // namespace

int FakeState::SetVf(const FakeFunction& pf, int vf, const VfSettings& change) {
  FakeFunction* function = Vf(pf.bdf, vf);
  if (function == nullptr) return EINVAL;
  int error = 0;
  ForEachVfSetting([&](const char* /*key*/, auto setting) {
    if (error != 0 || !(change.*setting)) return;
    error = Refusal(pf.driver, *(change.*setting));
    if (error == 0) *function->state.*setting = change.*setting;
  });
  return error;
}

}  // namespace railhead::testing
