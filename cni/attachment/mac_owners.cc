#include "cni/attachment/mac_owners.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/node_index.h"
#include "cni/fabric/probe_endpoint_mac.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {
namespace {

struct SharedMac {
  std::array<std::uint8_t, 5> prefix;
  std::size_t length;
  const char* protocol;
};

// RFC 9568 7.3 (VRRP, and with it CARP and anycast gateways), and what Cisco's routers use for HSRP and GLBP.
constexpr std::array<SharedMac, 5> kRouters = {{{{0x00, 0x00, 0x5e, 0x00, 0x01}, 5, "VRRP"},
                                                {{0x00, 0x00, 0x5e, 0x00, 0x02}, 5, "VRRP"},
                                                {{0x00, 0x00, 0x0c, 0x07, 0xac}, 5, "HSRP"},
                                                {{0x00, 0x00, 0x0c, 0x9f, 0x00}, 4, "HSRP"},
                                                {{0x00, 0x07, 0xb4, 0x00, 0x00}, 4, "GLBP"}}};

class Owners {
 public:
  Owners(const Root& root, RouteApi& host, const DevicePlan& plan)
      : root_(root), host_(host), plan_(plan), mac_(*plan.record.requested.vf.mac) {}

  Result<void> RefuseRouters() {
    for (const SharedMac& router : kRouters) {
      if (std::equal(router.prefix.begin(), router.prefix.begin() + router.length, mac_.bytes.begin()))
        return Refuse(std::string("routers that share an address by ") + router.protocol);
    }
    return {};
  }

  Result<void> RefuseNode() {
    for (const Link& other : RH_TRY(host_.ListLinks())) {
      if (other.mac == mac_ && other.index != plan_.link.index) return Refuse("interface " + other.name);
    }
    for (const PciDevice& pf : RH_TRY(ListNetworkPfs(root_))) {
      const auto name = RH_TRY(UplinkNetdev(root_, pf.address));
      const auto uplink = name ? RH_TRY(host_.FindLink(*name)) : std::nullopt;
      const int vfs = uplink ? static_cast<int>(RH_TRY(VfsOf(root_, pf.address)).size()) : 0;
      for (int vf = 0; vf < vfs; ++vf) {
        if (uplink->index == plan_.pf_index && plan_.record.vf == vf) continue;
        const auto state = RH_TRY(host_.GetVf(uplink->index, vf));
        if (state && state->mac == mac_) return Refuse("VF " + std::to_string(vf) + " of " + uplink->name);
      }
    }
    return {};
  }

  Result<void> RefuseProbeEndpoints(const Fabric& fabric) {
    std::vector<std::string> nodes;
    nodes.push_back(RH_TRY(NodeName(root_)));
    for (const auto& [node, index] : fabric.nodes) nodes.push_back(node);
    for (const Rail& rail : fabric.rails) {
      for (const std::string& node : nodes) {
        if (ProbeEndpointMac(node, rail.name) != mac_) continue;
        return Refuse("the probe endpoint of node " + node + " on rail " + rail.name);
      }
    }
    return {};
  }

  // true: the host or railheadd knows the gateway's MAC, and it is another one.
  Result<bool> RefuseGateway(const IpAddress& gateway) {
    bool known = false;
    for (const auto& [mac, where] : RH_TRY(AnswersFor(gateway))) {
      if (mac == mac_) return Fail(Refusal("the gateway " + gateway.ToString() + ", as " + where + " knows"));
      known = true;
    }
    return known;
  }

 private:
  [[nodiscard]] Error Refusal(const std::string& owner) const {
    return {ErrorCode::kConflict, "mac " + mac_.ToString() + " is that of " + owner,
            "ask for another one, or for none: every VF has its own", 0};
  }
  [[nodiscard]] Result<void> Refuse(const std::string& owner) const { return Fail(Refusal(owner)); }

  Result<std::map<MacAddress, std::string>> AnswersFor(const IpAddress& gateway) {
    std::map<MacAddress, std::string> found = ReportedMacs(gateway);
    for (const Link& link : RH_TRY(host_.ListLinks())) {
      for (const Neighbour& neighbour : RH_TRY(host_.ListNeighbours(link.index))) {
        if (neighbour.address == gateway && !neighbour.mac.IsZero()) found.emplace(neighbour.mac, "the host");
      }
    }
    return found;
  }

  // MACs that railheadd's probe endpoint has learnt, from reachability.json
  // (deviceplugin/services/reachability/reachability_report.h). A report that cannot be read is ignored.
  [[nodiscard]] std::map<MacAddress, std::string> ReportedMacs(const IpAddress& gateway) const {
    std::map<MacAddress, std::string> found;
    const auto text = ReadRootFile(root_.Path(paths::kReachabilityReport));
    if (!text || !*text) return found;
    const auto report = nlohmann::json::parse(**text, nullptr, false);
    if (!report.is_object() || !report.contains("rails")) return found;
    for (const auto& rail : report["rails"]) {
      const auto at = rail.is_object() ? rail.find("gateway") : rail.end();
      if (at == rail.end() || !at->is_object()) continue;
      const auto mac = MacAddress::Parse(at->value("mac", std::string()));
      if (mac && at->value("address", std::string()) == gateway.ToString())
        found.emplace(*mac, "railheadd's probe endpoint");
    }
    return found;
  }

  const Root& root_;
  RouteApi& host_;
  const DevicePlan& plan_;
  MacAddress mac_;
};

// Of a rail with nodeSubnet, as far as this node has an index.
std::optional<IpAddress> GatewayOf(const Root& root, const std::optional<Fabric>& fabric,
                                   const DevicePlan& device) {
  if (!device.rail || !device.rail->subnet) return std::nullopt;
  const Rail& rail = *device.rail;
  if (!rail.node_subnet || !fabric) return rail.GatewayOf(*rail.subnet);
  const std::string node = NodeName(root).value_or("");
  const auto ranges = rail.RangesOf(node, IndexOfThisNode(root, *fabric, node).value_or(std::nullopt));
  return ranges.empty() ? std::nullopt : rail.GatewayOf(rail.NetworkOf(ranges.front().first));
}

}  // namespace

Result<void> RefuseMacsOfOthers(const Root& root, RouteApi& host, const std::optional<Fabric>& fabric,
                                AttachPlan& plan) {
  for (const DevicePlan& device : plan.devices) {
    if (!device.record.requested.vf.mac) continue;
    Owners owners(root, host, device);
    RH_TRY(owners.RefuseRouters());
    RH_TRY(owners.RefuseNode());
    if (fabric) RH_TRY(owners.RefuseProbeEndpoints(*fabric));
    const auto gateway = plan.config.gateway ? plan.config.gateway : GatewayOf(root, fabric, device);
    if (!gateway) continue;
    const bool known = RH_TRY(owners.RefuseGateway(*gateway));
    plan.require_gateways =
        plan.require_gateways || (plan.for_pod && !known && !device.record.before.user_space);
  }
  return {};
}

}  // namespace railhead::attachment
