#include "tests/namespace/reachability/nodes.h"

#include <algorithm>

#include "deviceplugin/services/reachability/send_probes.h"

namespace railhead::testing {

namespace {

Rail RailOfNodes(int nodes, bool v6) {
  Rail rail;
  rail.name = "rail0";
  rail.subnet = IpPrefix::Parse(v6 ? "fd00:100::/64" : "10.100.0.0/24");
  if (!v6) rail.gateway = Gateway::Parse("10.100.0.254");
  rail.mtu = 1400;
  rail.traffic_class = 106;
  const std::string prefix = v6 ? "fd00:100::" : "10.100.0.";
  for (int i = 0; i < nodes; ++i)
    rail.probe_addresses["node" + std::to_string(i)] = *IpAddress::Parse(prefix + std::to_string(i + 1));
  return rail;
}

}  // namespace

ReachabilityNode::ReachabilityNode(Kernel& kernel, int number, int nodes, int paths, bool v6)
    : kernel_(kernel), name_("node" + std::to_string(number)), settings_([paths] {
        reachability::ReachabilitySettings settings;
        settings.enabled = true;
        settings.paths = paths;
        return settings;
      }()) {
  port_.device = "0000:0" + std::to_string(number) + ":00.0";
  port_.pf = "pf" + std::to_string(number);
  port_.rail = RailOfNodes(nodes, v6);
  port_.SetNetwork(name_, {});
  Restart();
}

void ReachabilityNode::Restart() {
  rail_.reset();
  echo_ = RunService<reachability::EchoServer>();
  rail_ = std::make_unique<reachability::RailProber>(kernel_, *echo_, name_);
  rail_->Set(port_, settings_);
}

void ReachabilityNode::Set(const reachability::RailPort& port) {
  port_ = port;
  rail_->Set(port_, settings_);
}

void ReachabilityNode::Round() {
  Round({port_});
}

void ReachabilityNode::Round(const std::vector<reachability::RailPort>& others) {
  const NetNs host = Must(kernel_.HostNetns());
  std::vector<reachability::Probe> probes;
  rail_->Prepare(host);
  rail_->AddProbes(random_, &probes);
  Must(SendProbes(&probes, std::chrono::milliseconds(400)));
  rail_->SendRdmaProbes(probes);
  rail_->TakeAnswers(probes, reachability::EchoServer::Clock::now() + std::chrono::milliseconds(400));
  rail_->Judge(host, others);
}

reachability::PeerReachability ReachabilityNode::Peer(int number) const {
  for (const reachability::PeerReachability& peer : rail_->Report().peers) {
    if (peer.node == "node" + std::to_string(number)) return peer;
  }
  return {};
}

bool ReachabilityCluster::IsGateway(int /*port*/, int vlan, const IpAddress& address) {
  return vlan == 0 && address == IpAddress::Parse("10.100.0.254");
}

ReachabilityCluster::ReachabilityCluster(bool v6) {
  switch_.Own(IsGateway);
  for (int number = 0; number < kNodes; ++number)
    nodes_.push_back(std::make_unique<ReachabilityNode>(kernel_, number, kNodes, 8, v6));
}

void ReachabilityCluster::ForgeArpAnswersAt(int node) {
  switch_.Own([node](int port, int /*vlan*/, const IpAddress& address) {
    const auto& endpoints = RailOfNodes(kNodes, false).probe_addresses;
    const bool others = std::ranges::any_of(endpoints, [&](const auto& endpoint) {
      return endpoint.second == address && endpoint.first != "node" + std::to_string(node);
    });
    return IsGateway(port, 0, address) || (port == node && others);
  });
}

void ReachabilityCluster::Cable(int node, bool in) {
  LinkChange change;
  change.up = in;
  Must(OpenRoute(wires_.the_switch())->ChangeLink(wires_.Far(node), change));
}

void ReachabilityCluster::Rounds(int count) {
  for (int round = 0; round < count; ++round) {
    for (const auto& node : nodes_) node->Round();
  }
}

}  // namespace railhead::testing
