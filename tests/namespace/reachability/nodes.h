// Three nodes on one rail, each a PF of tests/support/netns/wires.h on one switch. Tests start the rounds, so
// that nothing waits for intervals.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "deviceplugin/services/reachability/rail_prober.h"
#include "netns/linux_kernel.h"
#include "tests/namespace/reachability/fake_switch.h"
#include "tests/support/service/running.h"

namespace railhead::testing {

class ReachabilityNode {
 public:
  // `v6`: on a rail of IPv6, without a gateway.
  ReachabilityNode(Kernel& kernel, int number, int nodes, int paths, bool v6);
  void Round();
  void Round(const std::vector<reachability::RailPort>& others);
  [[nodiscard]] reachability::RailReachability Report() const { return rail_->Report(); }
  [[nodiscard]] reachability::PeerReachability Peer(int number) const;
  [[nodiscard]] const reachability::RailPort& port() const { return port_; }
  reachability::RailProber& rail() { return *rail_; }
  // Another description of the rail, from the next round on.
  void Set(const reachability::RailPort& port);
  // Like a railheadd that is killed and started again.
  void Restart();

 private:
  Kernel& kernel_;
  const std::string name_;
  const reachability::ReachabilitySettings settings_;
  reachability::RailPort port_;
  std::mt19937_64 random_{1};
  Running<reachability::EchoServer> echo_;
  std::unique_ptr<reachability::RailProber> rail_;  // its end drops its endpoint at the echo server
};

class ReachabilityCluster {
 public:
  static constexpr int kNodes = 3;
  explicit ReachabilityCluster(bool v6 = false);
  // Runs rounds of all nodes, one after the other.
  void Rounds(int count);
  ReachabilityNode& Node(int number) { return *nodes_[static_cast<std::size_t>(number)]; }
  FakeSwitch& Switch() { return switch_; }
  Wires& Cables() { return wires_; }
  // Plugs a node's cable into the switch, or pulls it.
  void Cable(int node, bool in);
  Kernel& kernel() { return kernel_; }
  // A host beside that node answers ARP for the endpoints of the others before they do, in every VLAN.
  void ForgeArpAnswersAt(int node);
  // The switch is the rail's gateway, and nothing else.
  static bool IsGateway(int port, int vlan, const IpAddress& address);
  // The name of the state that node FROM reports for node TO.
  std::string State(int from, int to) { return std::string(WordOf(Node(from).Peer(to).state)); }
  std::string Rail(int node) { return std::string(WordOf(Node(node).Report().state)); }

 private:
  Wires wires_{kNodes};
  LinuxKernel kernel_{Root()};
  FakeSwitch switch_{wires_, kNodes};
  std::vector<std::unique_ptr<ReachabilityNode>> nodes_;
};

}  // namespace railhead::testing
