// The answers on the network: from neighbours, and from hosts that already use an address.
#include <linux/neighbour.h>

#include <algorithm>
#include <cerrno>

#include "netns/base/text.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

struct Port {
  std::string pf;  // BDF; "": on no NIC
  int vlan = 0;
};

Port PortOf(FakeState& state, const FakeNetdev& netdev) {
  const FakeFunction* function = netdev.bdf.empty() ? nullptr : state.Function(netdev.bdf);
  if (function == nullptr) return {};
  if (!function->state || !function->state->vlan) return {function->bdf, 0};
  return {function->pf, function->state->vlan->id};
}

// arp_ignore 8: no ARP request is answered (Documentation/networking/ip-sysctl.rst).
bool IsSilent(FakeState& state, const FakeNetdev& netdev) {
  for (const std::string& scope : {std::string("all"), netdev.link.name}) {
    if (state.ReadSysctl(netdev.ns, "net/ipv4/conf/" + scope + "/arp_ignore") == "8") return true;
  }
  return false;
}

}  // namespace

bool FakeState::OnOneWire(const FakeNetdev& one, const FakeNetdev& other) {
  if (one.id == other.id) return false;
  if (one.peer == other.id) return true;
  const Port here = PortOf(*this, one);
  const Port there = PortOf(*this, other);
  return !here.pf.empty() && here.pf == there.pf && here.vlan == there.vlan;
}

std::optional<MacAddress> FakeState::AnswerFor(const FakeNetdev& netdev, const IpAddress& address) {
  if (!HasCarrier(netdev)) return std::nullopt;
  const std::string pf = PortOf(*this, netdev).pf;
  for (const FakeHost& host : hosts) {
    if ((!host.address || host.address == address) && (host.pf.empty() || host.pf == pf)) return host.mac;
  }
  for (const FakeNetdev& other : netdevs) {
    const bool has_it = std::any_of(other.addresses.begin(), other.addresses.end(),
                                    [&](const IpPrefix& one) { return one.address == address; });
    if (!has_it || !OnOneWire(netdev, other) || !HasCarrier(other)) continue;
    if (address.IsV6() || !IsSilent(*this, other)) return other.link.mac;
  }
  return std::nullopt;
}

// The result stays as the kernel's neighbour entry: resolved, or failed.
void FakeState::Resolve(const FakeNetdev& netdev, const IpAddress& address) {
  auto& neighbours = Namespace(netdev.ns)->neighbours;
  const auto known = std::find_if(neighbours.begin(), neighbours.end(), [&](const Neighbour& one) {
    return one.link == netdev.link.index && one.address == address;
  });
  if (known != neighbours.end() && !known->mac.IsZero()) return;
  if (known != neighbours.end()) neighbours.erase(known);
  const auto mac = AnswerFor(netdev, address);
  const std::uint16_t state = mac ? NUD_REACHABLE : NUD_FAILED;
  neighbours.push_back({address, mac.value_or(MacAddress{}), netdev.link.index, state});
}

void FakeKernel::AddForeignHost(const std::string& pf, const std::string& address, const std::string& mac) {
  state_.hosts.push_back({pf, IpAddress::Parse(address).value(), MacAddress::Parse(mac).value()});
}

void FakeKernel::AddResponder(const std::string& pf, const std::string& mac) {
  state_.hosts.push_back({pf, std::nullopt, MacAddress::Parse(mac).value()});
}

Result<std::vector<AddressConflict>> FakeKernel::ProbeAddresses(const NetNs& ns,
                                                                const std::vector<ProbeTarget>& targets,
                                                                std::chrono::milliseconds budget) {
  std::vector<std::string> texts;
  texts.reserve(targets.size());
  for (const auto& target : targets) {
    texts.push_back(target.address.ToString() + " on interface " + std::to_string(target.link));
  }
  const std::string what = "probing " + Join(texts, ", ");
  if (const auto injected = Begin("ProbeAddresses", Join(texts, ", "))) return FailSys(injected.error, what);
  const auto name = NameOf(ns);
  if (!name) return FailSys(EINVAL, what);
  std::vector<AddressConflict> conflicts;
  if (budget.count() <= 0) return conflicts;
  probes_.push_back({*name, targets, budget});
  for (const ProbeTarget& target : targets) {
    const FakeNetdev* netdev = state_.Find(*name, target.link);
    if (netdev == nullptr) return FailSys(ENXIO, what);
    if (!netdev->link.up) return FailSys(ENETDOWN, what);
    const auto other = state_.AnswerFor(*netdev, target.address);
    if (other && *other != target.mac) conflicts.push_back({target, *other, *other});
  }
  return conflicts;
}

}  // namespace railhead::testing
