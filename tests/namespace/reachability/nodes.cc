#include "tests/namespace/reachability/nodes.h"

namespace railhead::testing {

namespace {

Rail RailOfNodes(int nodes, bool v6) {
  Rail rail;
  rail.name = "rail0";
  rail.subnet = IpPrefix::Parse(v6 ? "fd00:100::/64" : "10.100.0.0/24");
  if (!v6) rail.gateway = IpAddress::Parse("10.100.0.254");
  rail.mtu = 1400;
  rail.traffic_class = 106;
  const std::string prefix = v6 ? "fd00:100::" : "10.100.0.";
  for (int i = 0; i < nodes; ++i)
    rail.stations["node" + std::to_string(i)] = *IpAddress::Parse(prefix + std::to_string(i + 1));
  return rail;
}

}  // namespace

ReachNode::ReachNode(Kernel& kernel, int number, int nodes, int paths, bool v6)
    : kernel_(kernel), name_("node" + std::to_string(number)), settings_([paths] {
        reachability::ConnectivitySettings settings;
        settings.enabled = true;
        settings.paths = paths;
        return settings;
      }()) {
  port_.device = "0000:0" + std::to_string(number) + ":00.0";
  port_.pf = "pf" + std::to_string(number);
  port_.rail = RailOfNodes(nodes, v6);
  Restart();
}

void ReachNode::Restart() {
  rail_.reset();
  echo_ = Must(reachability::EchoServer::Start());
  rail_ = std::make_unique<reachability::RailProber>(kernel_, *echo_, name_);
  rail_->Set(port_, settings_);
}

void ReachNode::Set(const reachability::RailPort& port) {
  port_ = port;
  rail_->Set(port_, settings_);
}

void ReachNode::Round() {
  Round({port_});
}

void ReachNode::Round(const std::vector<reachability::RailPort>& others) {
  const NetNs host = Must(kernel_.HostNetns());
  std::vector<reachability::Shot> shots;
  rail_->Prepare(host);
  rail_->AddShots(random_, &shots);
  Must(Fire(&shots, std::chrono::milliseconds(400)));
  rail_->Ask(shots);
  rail_->Take(shots, reachability::EchoServer::Clock::now() + std::chrono::milliseconds(400));
  rail_->Judge(host, others);
}

reachability::PeerReach ReachNode::Peer(int number) const {
  for (const reachability::PeerReach& peer : rail_->Reach().peers) {
    if (peer.node == "node" + std::to_string(number)) return peer;
  }
  return {};
}

bool ReachCluster::IsGateway(int /*port*/, int vlan, const IpAddress& address) {
  return vlan == 0 && address == IpAddress::Parse("10.100.0.254");
}

ReachCluster::ReachCluster(bool v6) {
  switch_.Own(IsGateway);
  for (int number = 0; number < kNodes; ++number)
    nodes_.push_back(std::make_unique<ReachNode>(kernel_, number, kNodes, 8, v6));
}

void ReachCluster::Cable(int node, bool in) {
  LinkChange change;
  change.up = in;
  Must(OpenRoute(wires_.the_switch())->ChangeLink(wires_.Far(node), change));
}

void ReachCluster::Rounds(int count) {
  for (int round = 0; round < count; ++round) {
    for (const auto& node : nodes_) node->Round();
  }
}

}  // namespace railhead::testing
