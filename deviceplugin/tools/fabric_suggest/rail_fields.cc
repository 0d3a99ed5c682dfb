#include "deviceplugin/tools/fabric_suggest/rail_fields.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "netns/base/text.h"

namespace railhead::fabric_suggest {
namespace {

// Around the IP packet: Ethernet header and checksum (IEEE 802.3-2018 3.2.7).
constexpr int kFrameOverhead = 18;
// RDMA's largest MTU of 4096 bytes, and the headers of RoCE v2.
constexpr int kLargeMtu = 4200;
constexpr std::size_t kLongestPattern = 255;

using Network = std::pair<const NodeObservation*, const ObservedNetwork*>;

// Has room for a gateway and hosts.
bool IsSubnet(const IpPrefix& prefix) {
  return prefix.length >= 8 && prefix.address.Bits() - prefix.length >= 2 &&
         !prefix.address.IsUnspecified() && !prefix.address.IsMulticast();
}

// IPv4 first.
std::optional<IpPrefix> SubnetOf(const ObservedNetwork& network) {
  std::optional<IpPrefix> subnet;
  for (const IpPrefix& address : network.addresses) {
    if (IsSubnet(address) && (!subnet || address.Network() < *subnet)) subnet = address.Network();
  }
  return subnet;
}

// Tagged or not, and the VLAN.
using PortVlan = std::pair<bool, int>;

// A port states the VLAN of its untagged frames, and names those that it is in (IEEE 802.1Q-2018 D.2.1,
// D.2.3). Of several that it names none is known to be the rail's.
std::optional<PortVlan> VlanOfPort(const LldpNeighbor& port) {
  if (port.port_vlan) return PortVlan{false, *port.port_vlan};
  if (port.vlans.size() == 1) return PortVlan{true, *port.vlans.begin()};
  return std::nullopt;
}

std::string TextOf(const PortVlan& port) {
  return std::to_string(port.second) + (port.first ? " (tagged)" : "");
}

class FieldSetter {
 public:
  FieldSetter(const AlignedRail& aligned, std::size_t number, const Cables& cables,
              const SuggestOptions& options, Rail* rail, Findings* findings)
      : aligned_(aligned),
        number_(number),
        cables_(cables),
        options_(options),
        rail_(rail),
        findings_(findings) {}

  void SetSoftRoce();
  void SetVlan();
  void SetMtu();
  void SetSubnet(const std::optional<IpPrefix>& assigned);
  void SetGateway();
  void SetRoutes();
  void SetExclude();
  void SetSwitches();

 private:
  void Say(const char* key, const std::string& value, const std::string& reason, Certainty certainty) {
    findings_->guesses.push_back(
        {"/rails/" + std::to_string(number_) + "/" + key, rail_->name, key, value, reason, certainty});
  }
  // What the switch port of a right cable says.
  [[nodiscard]] const LldpNeighbor* NeighborOf(const RailMember& member) const {
    if (cables_.IsWrong(number_, *member.node)) return nullptr;
    return member.pf->neighbor ? &*member.pf->neighbor : nullptr;
  }
  [[nodiscard]] std::string MembersText() const {
    return aligned_.members.size() == 1 ? "the node's PF has it" : "the PFs of the nodes have it";
  }
  void FollowPorts(bool host_is_untagged);
  void CheckPorts(bool have_voted);
  void CheckFrames();
  [[nodiscard]] std::vector<Network> Networks() const;

  const AlignedRail& aligned_;
  const std::size_t number_;
  const Cables& cables_;
  const SuggestOptions& options_;
  Rail* const rail_;
  Findings* const findings_;
};

// The hosts' networks on the rail's PFs in the rail's VLAN.
std::vector<Network> FieldSetter::Networks() const {
  std::vector<Network> networks;
  for (const RailMember& member : aligned_.members) {
    for (const ObservedNetwork& network : member.pf->networks) {
      if (network.vlan == rail_->vlan) networks.emplace_back(member.node, &network);
    }
  }
  return networks;
}

// For a rail of which the hosts show no VLAN.
void FieldSetter::FollowPorts(bool host_is_untagged) {
  Votes<PortVlan> ports;
  bool named = false;
  for (const RailMember& member : aligned_.members) {
    const LldpNeighbor* neighbor = NeighborOf(member);
    if (neighbor == nullptr) continue;
    named = named || !neighbor->vlans.empty();
    if (const auto vlan = VlanOfPort(*neighbor)) ports.Add(*vlan, member.node->node);
  }
  if (ports.empty()) {
    if (named)
      Say("vlan", "", "the switch port names several VLANs and none of untagged frames", Certainty::kLow);
    return;
  }
  ContradictOthers(ports, rail_->name, "vlan", "VLAN of the switch port", TextOf, findings_);
  const auto& [tagged, vlan] = ports.Winner();
  const std::string number = std::to_string(vlan);
  if (!tagged)
    return Say("vlan", "", "the switch port puts untagged frames into VLAN " + number, Certainty::kMedium);
  if (host_is_untagged) {
    return Say("vlan", "",
               "the hosts' addresses are untagged, but the switch port names VLAN " + number +
                   " and none of untagged frames",
               Certainty::kLow);
  }
  rail_->vlan = vlan;
  Say("vlan", number, "the switch port names it and no VLAN of untagged frames", Certainty::kMedium);
  CheckPorts(true);
}

// Ports that name tagged VLANs, but not the rail's. A port that names none may carry any. `have_voted`: ports
// with one VLAN are compared already.
void FieldSetter::CheckPorts(bool have_voted) {
  for (const RailMember& member : aligned_.members) {
    const LldpNeighbor* neighbor = NeighborOf(member);
    if (neighbor == nullptr || neighbor->port_vlan == rail_->vlan || neighbor->vlans.contains(*rail_->vlan) ||
        (have_voted && VlanOfPort(*neighbor)))
      continue;
    std::vector<std::string> tagged;
    for (const int vlan : neighbor->vlans) {
      if (vlan != neighbor->port_vlan) tagged.push_back(std::to_string(vlan));
    }
    if (tagged.empty()) continue;
    findings_->Contradict(rail_->name, "vlan", member.node->node,
                          "the VLAN is " + std::to_string(*rail_->vlan) +
                              ", but the tagged VLANs of the switch port are " + Join(tagged, ", "));
  }
}

void FieldSetter::SetSoftRoce() {
  Votes<bool> soft;
  for (const RailMember& member : aligned_.members)
    soft.Add(!member.pf->is_rdma && member.pf->soft_roce, member.node->node);
  if (soft.empty()) return;
  ContradictOthers(
      soft, rail_->name, "softRoce", "RDMA device",
      [](bool is) { return std::string(is ? "soft RoCE" : "hardware"); }, findings_);
  rail_->soft_roce = soft.Winner();
  if (soft.Winner()) Say("softRoce", "true", "the PFs have RDMA by soft RoCE only", Certainty::kMedium);
}

void FieldSetter::SetVlan() {
  Votes<int> of_vfs;
  Votes<int> of_networks;  // 0: untagged
  Votes<int> of_devices;
  for (const RailMember& member : aligned_.members) {
    if (member.pf->vf_vlan) of_vfs.Add(*member.pf->vf_vlan, member.node->node);
    std::set<int> with_subnet;
    std::set<int> devices;
    for (const ObservedNetwork& network : member.pf->networks) {
      if (SubnetOf(network)) with_subnet.insert(network.vlan.value_or(0));
      if (network.vlan) devices.insert(*network.vlan);
    }
    // Of several the untagged one, then the smallest. Several without addresses show nothing.
    if (!with_subnet.empty()) of_networks.Add(*with_subnet.begin(), member.node->node);
    if (devices.size() == 1) of_devices.Add(*devices.begin(), member.node->node);
  }
  const auto text = [](int vlan) { return vlan == 0 ? std::string("none") : std::to_string(vlan); };
  const auto take = [&](const Votes<int>& votes, const std::string& reason, Certainty certainty) {
    ContradictOthers(votes, rail_->name, "vlan", "VLAN", text, findings_);
    if (votes.Winner() == 0) return FollowPorts(true);
    rail_->vlan = votes.Winner();
    Say("vlan", text(*rail_->vlan), reason, certainty);
    CheckPorts(false);
  };
  if (!of_vfs.empty()) {
    take(of_vfs, "VF 0 of the PF has it", Certainty::kHigh);
  } else if (!of_networks.empty()) {
    take(of_networks, "the host's addresses are on a VLAN device of the PF", Certainty::kMedium);
  } else if (!of_devices.empty()) {
    take(of_devices, "the PF has a VLAN device", Certainty::kLow);
  } else {
    FollowPorts(false);
  }
}

// A smaller frame than the MTU needs, or much larger ones.
void FieldSetter::CheckFrames() {
  std::optional<int> smallest;
  for (const RailMember& member : aligned_.members) {
    const LldpNeighbor* neighbor = NeighborOf(member);
    if (neighbor == nullptr || !neighbor->max_frame) continue;
    smallest = std::min(smallest.value_or(*neighbor->max_frame), *neighbor->max_frame);
    if (*rail_->mtu <= *neighbor->max_frame - kFrameOverhead) continue;
    findings_->Contradict(rail_->name, "mtu", member.node->node,
                          "the MTU is " + std::to_string(*rail_->mtu) +
                              ", but the switch port takes frames of at most " +
                              std::to_string(*neighbor->max_frame) + " bytes");
  }
  if (smallest && *rail_->mtu < kLargeMtu && *smallest >= kLargeMtu + kFrameOverhead) {
    Say("mtu", std::to_string(*rail_->mtu),
        "the PFs have it, but the switch ports take frames of " + std::to_string(*smallest) +
            " bytes: RDMA is faster with an MTU of at least " + std::to_string(kLargeMtu),
        Certainty::kLow);
  } else {
    Say("mtu", std::to_string(*rail_->mtu), MembersText(), Certainty::kHigh);
  }
}

void FieldSetter::SetMtu() {
  Votes<int> votes;
  for (const RailMember& member : aligned_.members) {
    if (member.pf->mtu && *member.pf->mtu >= kMinMtu && *member.pf->mtu <= kMaxMtu)
      votes.Add(*member.pf->mtu, member.node->node);
  }
  if (votes.empty()) return;
  ContradictOthers(
      votes, rail_->name, "mtu", "MTU of the PF", [](int mtu) { return std::to_string(mtu); }, findings_);
  rail_->mtu = votes.Winner();
  CheckFrames();
}

void FieldSetter::SetSubnet(const std::optional<IpPrefix>& assigned) {
  Votes<IpPrefix> votes;
  for (const auto& [node, network] : Networks()) {
    if (const auto subnet = SubnetOf(*network)) votes.Add(*subnet, node->node);
  }
  if (assigned) {
    rail_->subnet = assigned;
    const bool other = !votes.empty() && !(votes.AreOne() && votes.Winner() == *assigned);
    Say("subnet", assigned->ToString(),
        std::string("a prefix of the supernet, in the order of the rails") +
            (other ? "; the hosts have addresses of " + votes.Winner().ToString() + " there" : ""),
        other ? Certainty::kLow : Certainty::kHigh);
    return;
  }
  if (votes.empty() || options_.supernet) {
    Say("subnet", "",
        options_.supernet
            ? "the supernet has no subnet left"
            : "no host has an address on it that shows a subnet; --supernet gives the rails subnets",
        Certainty::kLow);
    return;
  }
  ContradictOthers(
      votes, rail_->name, "subnet", "subnet of the host's address",
      [](const IpPrefix& subnet) { return subnet.ToString(); }, findings_);
  rail_->subnet = votes.Winner();
  Say("subnet", rail_->subnet->ToString(), "the hosts have such addresses on the PFs", Certainty::kMedium);
}

void FieldSetter::SetGateway() {
  if (!rail_->subnet) return;
  Votes<IpAddress> votes;
  for (const auto& [node, network] : Networks()) {
    // Of several gateways the default route has the right one.
    const ObservedRoute* widest = nullptr;
    for (const ObservedRoute& route : network->routes) {
      if (!rail_->subnet->Contains(route.gateway)) continue;
      if (widest == nullptr || route.destination.length < widest->destination.length) widest = &route;
    }
    if (widest != nullptr) votes.Add(widest->gateway, node->node);
  }
  if (!votes.empty()) {
    ContradictOthers(
        votes, rail_->name, "gateway", "gateway", [](const IpAddress& gateway) { return gateway.ToString(); },
        findings_);
    rail_->gateway = Gateway{.address = votes.Winner()};
    Say("gateway", rail_->gateway->ToString(), "the hosts have routes through it", Certainty::kHigh);
    return;
  }
  const auto gateway = options_.gateway ? options_.gateway->In(*rail_->subnet) : std::nullopt;
  if (!gateway) return;
  rail_->gateway = Gateway{.address = *gateway};
  Say("gateway", gateway->ToString(),
      "--gateway " + options_.gateway->ToString() + " says so, and no host has a route to tell",
      Certainty::kMedium);
}

void FieldSetter::SetRoutes() {
  if (!rail_->gateway) return;
  const IpAddress& gateway = rail_->gateway->address;
  std::set<IpPrefix> routes;
  if (options_.supernet && options_.supernet->address.IsV6() == gateway.IsV6())
    routes.insert(options_.supernet->Network());
  const std::size_t of_supernet = routes.size();
  Votes<IpPrefix> votes;
  for (const auto& [node, network] : Networks()) {
    std::set<IpPrefix> of_node;
    for (const ObservedRoute& route : network->routes) {
      const IpPrefix to = route.destination.Network();
      if (route.gateway == gateway && to.length > 0 && to.address.IsV6() == gateway.IsV6() &&
          !rail_->subnet->Contains(to))
        of_node.insert(to);
    }
    for (const IpPrefix& to : of_node) votes.Add(to, node->node);
  }
  for (const auto& [to, nodes] : votes.nodes()) {
    if (nodes.size() * 2 > aligned_.members.size()) routes.insert(to);
  }
  if (routes.empty()) return;
  rail_->routes.assign(routes.begin(), routes.end());
  std::vector<std::string> texts;
  texts.reserve(routes.size());
  for (const IpPrefix& to : routes) texts.push_back(to.ToString());
  const bool by_hosts = routes.size() > of_supernet;
  Say("routes", Join(texts, ", "),
      by_hosts ? "most hosts have these routes through the gateway" : "the other rails are in the supernet",
      Certainty::kMedium);
}

void AddAddresses(const ObservedPf& pf, const IpPrefix& subnet, std::set<IpAddress>* addresses) {
  for (const ObservedNetwork& network : pf.networks) {
    for (const IpPrefix& one : network.addresses) {
      if (subnet.Contains(one.address)) addresses->insert(one.address);
    }
  }
}

// The hosts' own addresses, also on other PFs. Consecutive ones are a range.
void FieldSetter::SetExclude() {
  if (!rail_->subnet) return;
  std::set<IpAddress> taken;
  for (const RailMember& member : aligned_.members) {
    for (const ObservedPf& pf : member.node->pfs) AddAddresses(pf, *rail_->subnet, &taken);
  }
  for (const IpAddress& address : taken) {
    if (!rail_->exclude.empty() && rail_->exclude.back().last.Plus(1) == address) {
      rail_->exclude.back().last = address;
    } else {
      rail_->exclude.push_back({address, address});
    }
  }
  if (taken.empty()) return;
  Say("exclude", std::to_string(taken.size()) + " addresses",
      "the hosts have them; those of other nodes have to be added", Certainty::kMedium);
}

// fnmatch(3) gives these characters a meaning.
std::string EscapedPattern(const std::string& name) {
  std::string pattern;
  for (const char c : name) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

void FieldSetter::SetSwitches() {
  if (cables_.heard[number_] < 2) return;
  for (const std::string& name : cables_.switches[number_]) {
    std::string pattern = EscapedPattern(name);
    if (pattern.size() <= kLongestPattern) rail_->expected_switches.push_back(std::move(pattern));
  }
  if (rail_->expected_switches.empty()) return;
  Say("expectedSwitches", Join(rail_->expected_switches, ", "),
      "LLDP frames named them on " + std::to_string(cables_.heard[number_]) + " of " +
          std::to_string(aligned_.members.size()) + " nodes",
      Certainty::kMedium);
}

}  // namespace

void SetRailFields(const AlignedRail& aligned, std::size_t number, const Cables& cables,
                   const SuggestOptions& options, const std::optional<IpPrefix>& assigned, Rail* rail,
                   Findings* findings) {
  FieldSetter setter(aligned, number, cables, options, rail, findings);
  setter.SetSoftRoce();
  setter.SetVlan();
  setter.SetMtu();
  setter.SetSubnet(assigned);
  setter.SetGateway();
  setter.SetRoutes();
  setter.SetExclude();
  setter.SetSwitches();
}

}  // namespace railhead::fabric_suggest
