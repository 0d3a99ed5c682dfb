// Rails with faults, on the real kernel: what a node reports about them, and that it blames nothing healthy.
#include <gtest/gtest.h>

#include <atomic>

#include "deviceplugin/services/reachability/rail_verdicts.h"
#include "tests/namespace/reachability/nodes.h"

namespace railhead::testing {
namespace {

class RailProberTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.Rounds(3);
    for (int node = 0; node < ReachabilityCluster::kNodes; ++node) {
      ASSERT_EQ(cluster_.Rail(node), "reachable") << cluster_.Node(node).Report().because;
    }
  }
  // Everything is reachable after `rounds` more rounds without loss.
  void ExpectWell(int rounds = 3) {
    cluster_.Switch().Drop(nullptr);
    cluster_.Rounds(rounds);
    for (int node = 0; node < ReachabilityCluster::kNodes; ++node)
      EXPECT_EQ(cluster_.Rail(node), "reachable") << cluster_.Node(node).Report().because;
  }

  ReachabilityCluster cluster_;
};

TEST_F(RailProberTest, KnowsItsGatewayAndItsPeers) {
  const reachability::RailReachability reach = cluster_.Node(0).Report();
  EXPECT_EQ(reach.because, "");
  EXPECT_TRUE(reach.probed);
  ASSERT_TRUE(reach.gateway);
  EXPECT_TRUE(reach.gateway->answers);
  EXPECT_EQ(reach.gateway->mac, MacAddress::Parse("02:00:00:00:00:fe"));
  EXPECT_EQ(reach.probe_address, IpAddress::Parse("10.100.0.1"));
  EXPECT_EQ(reach.Count(reachability::PeerState::kReachable), 2U);
  EXPECT_GT(reach.peers[0].rtt.value_or(std::chrono::microseconds(0)).count(), 0);
  EXPECT_EQ(reach.peers[0].paths, 8U);
  // The others' endpoints were there before the last round.
  cluster_.Rounds(1);
  const reachability::RailReachability next = cluster_.Node(0).Report();
  EXPECT_GT(next.probes, reach.probes);
  EXPECT_EQ(next.probes - reach.probes, next.answers - reach.answers);
}

// Unknown senders share a rate limit, and pods are unknown senders. So pods of different nodes must not all
// probe the same two endpoints.
TEST_F(RailProberTest, PodsProbeTheEndpointsOfTheNextNodes) {
  for (int node = 0; node < ReachabilityCluster::kNodes; ++node) {
    const auto endpoint = [&](int steps) {
      const std::string name = "node" + std::to_string((node + steps) % ReachabilityCluster::kNodes);
      return cluster_.Node(node).port().rail.probe_addresses.at(name);
    };
    EXPECT_EQ(cluster_.Node(node).rail().ReachablePeers(1), std::vector{endpoint(1)});
    EXPECT_EQ(cluster_.Node(node).rail().ReachablePeers(9), (std::vector{endpoint(1), endpoint(2)}));
  }
}

TEST_F(RailProberTest, ANicThatIsGoneIsADeadRail) {
  cluster_.Cables().Unplug(1);
  cluster_.Rounds(3);
  EXPECT_EQ(cluster_.Rail(1), "dead");
  EXPECT_EQ(cluster_.Node(1).Report().because, "its PF is not on the host");
  EXPECT_EQ(cluster_.State(1, 0), "unknown") << "it cannot be probed";
  EXPECT_EQ(cluster_.State(0, 1), "silent");
  EXPECT_EQ(cluster_.State(0, 2), "reachable");
  EXPECT_EQ(cluster_.Rail(0), "degraded");
  EXPECT_EQ(cluster_.Node(0).Report().because, "silent: node1");
}

TEST_F(RailProberTest, WhatOneNodeDoesWrongIsItsOwnFault) {
  const auto verdict = [&](int node) {
    reachability::RailVerdicts verdicts;
    const reachability::ReachabilityReport report{"node", {}, {cluster_.Node(node).Report()}, {}};
    for (const auto at : {std::chrono::seconds(0), reachability::RailVerdicts::kImpairedAfter})
      (void)verdicts.Update(report, reachability::RailVerdicts::Clock::time_point(at));
    const auto faults = verdicts.Faults();
    return faults.empty() ? std::string() : faults.begin()->second;
  };
  EXPECT_EQ(verdict(1), "");
  cluster_.Switch().Drop(
      [](const Passing& passing) { return passing.from == 1 && passing.source_port != 0; });
  cluster_.Rounds(4);
  EXPECT_TRUE(verdict(1).starts_with("probes find faults to most peers: ")) << verdict(1);
  EXPECT_EQ(verdict(0), "");
  EXPECT_EQ(verdict(2), "");
  ExpectWell(4);
  EXPECT_EQ(verdict(1), "");
}

TEST_F(RailProberTest, OneLostAnswerOfTheGatewayIsNothing) {
  cluster_.Switch().Own(nullptr);
  cluster_.Rounds(1);
  EXPECT_EQ(cluster_.Rail(0), "reachable") << "one ARP packet may be lost";
  cluster_.Switch().Own(ReachabilityCluster::IsGateway);
  cluster_.Rounds(1);
  EXPECT_EQ(cluster_.Rail(0), "reachable");
}

TEST_F(RailProberTest, DoesNotTakeAnAddressThatAnotherHas) {
  cluster_.Switch().Own([](int port, int vlan, const IpAddress& address) {
    return ReachabilityCluster::IsGateway(port, vlan, address) || address == IpAddress::Parse("10.100.0.2");
  });
  cluster_.Node(1).Restart();
  for (int round = 0; round < 2; ++round) cluster_.Node(1).Round();
  const reachability::RailReachability reach = cluster_.Node(1).Report();
  EXPECT_EQ(reach.state, reachability::ReachabilityState::kDead);
  EXPECT_EQ(reach.because, "the probe address 10.100.0.2 is in use by 02:00:00:00:00:fe");
  EXPECT_FALSE(reach.probed) << "it says nothing of the fabric";
  cluster_.Switch().Own(ReachabilityCluster::IsGateway);
  ExpectWell(4);
}

// The attack: a host answers ARP for the other endpoints before they do.
TEST_F(RailProberTest, ForgedArpAnswersDoNotHideEndpoints) {
  cluster_.ForgeArpAnswersAt(0);
  cluster_.Node(0).Restart();
  cluster_.Rounds(4);
  for (int node = 0; node < ReachabilityCluster::kNodes; ++node) {
    EXPECT_EQ(cluster_.Rail(node), "reachable") << node << ": " << cluster_.Node(node).Report().because;
  }
}

// A node is removed from the fabric and another one takes its address: the neighbour entries follow.
TEST_F(RailProberTest, KnownMacAddressesFollowTheFabric) {
  reachability::RailPort port = cluster_.Node(0).port();
  const reachability::RailPort before = port;
  port.rail.probe_addresses.erase("node1");
  port.rail.probe_addresses["nobody"] = *IpAddress::Parse("10.100.0.2");
  cluster_.Node(0).Set(port);
  for (int round = 0; round < 3; ++round) cluster_.Node(0).Round();
  EXPECT_EQ(cluster_.Rail(0), "degraded") << "node1 has not the MAC address of `nobody`";
  cluster_.Node(0).Set(before);
  ExpectWell(4);
}

TEST_F(RailProberTest, ARestartTellsNobodyOfAFault) {
  const reachability::RailReachability before = cluster_.Node(1).Report();
  cluster_.Node(1).Restart();
  cluster_.Node(1).rail().Restore(before);
  EXPECT_EQ(cluster_.Node(1).Report().state, reachability::ReachabilityState::kReachable);
  EXPECT_EQ(cluster_.State(1, 0), "reachable");
  cluster_.Rounds(2);
  for (int node = 0; node < ReachabilityCluster::kNodes; ++node) EXPECT_EQ(cluster_.Rail(node), "reachable");
}

TEST_F(RailProberTest, NothingOfItIsLeftOnTheHost) {
  const auto host = OpenRoute(Must(NetNs::Current()));
  for (const Link& link : Must(host->ListLinks()))
    EXPECT_TRUE(Must(host->ListAddresses(link.index)).empty() || link.name == "lo" ||
                link.name.starts_with("pf"))
        << link.name;
  EXPECT_FALSE(Must(host->FindLink("probe")));
}

TEST_F(RailProberTest, ARailWithoutProbeAddressesProbesTheGatewayOnly) {
  reachability::RailPort port = cluster_.Node(0).port();
  port.rail.probe_addresses.clear();
  cluster_.Node(0).Set(port);
  cluster_.Node(0).Round();
  EXPECT_EQ(cluster_.Rail(0), "reachable");
  EXPECT_TRUE(cluster_.Node(0).Report().peers.empty());
  cluster_.Switch().Own(nullptr);
  cluster_.Node(0).Round();
  cluster_.Node(0).Round();
  EXPECT_EQ(cluster_.Rail(0), "dead");
}

TEST_F(RailProberTest, APfThatIsGivenToPodsHasNoEndpoint) {
  reachability::RailPort port = cluster_.Node(0).port();
  port.pf_in_pods = true;
  cluster_.Node(0).Restart();
  cluster_.Node(0).Set(port);
  for (int round = 0; round < 2; ++round) cluster_.Node(0).Round();
  EXPECT_EQ(cluster_.Node(0).Report().because, "its PF is given to pods as a whole");
}

// So that switches treat probes and answers like RoCE. tests/system/faults/faults_guest.sh checks the
// priority in a VLAN's tag.
TEST(RailProberClassTest, SendsAsRoceDoes) {
  for (const bool v6 : {false, true}) {
    ReachabilityCluster cluster(v6);
    std::atomic<int> as_roce = 0;
    std::atomic<int> answers = 0;
    std::atomic<int> otherwise = 0;
    cluster.Switch().Drop([&](const Passing& passing) {
      if (passing.source_port == 0) return false;
      ++(passing.traffic_class == 106 ? as_roce : otherwise);
      if (passing.source_port == 4795) ++answers;
      return false;
    });
    cluster.Rounds(3);
    cluster.Switch().Drop(nullptr);
    EXPECT_GT(answers, 0) << cluster.Node(0).Report().because;
    EXPECT_GT(as_roce, answers);
    EXPECT_EQ(otherwise, 0) << (v6 ? "IPv6" : "IPv4");
  }
}

TEST_F(RailProberTest, TakesUpAnotherTrafficClass) {
  reachability::RailPort port = cluster_.Node(0).port();
  port.rail.traffic_class = 0;
  cluster_.Node(0).Set(port);
  std::atomic<int> before = 0;
  cluster_.Switch().Drop([&](const Passing& passing) {
    if (passing.from == 0 && passing.source_port != 0 && passing.traffic_class != 0) ++before;
    return false;
  });
  cluster_.Rounds(1);
  EXPECT_EQ(before, 0);
  ExpectWell();
}

// Only the kernel's part differs: neighbours, and addresses that the kernel would resolve itself.
TEST(RailProberIpv6Test, KnowsItsPeersAndFindsAFault) {
  ReachabilityCluster cluster(true);
  cluster.Rounds(3);
  for (int node = 0; node < ReachabilityCluster::kNodes; ++node)
    ASSERT_EQ(cluster.Rail(node), "reachable") << cluster.Node(node).Report().because;
  EXPECT_EQ(cluster.Node(0).Report().Count(reachability::PeerState::kReachable), 2U);
  EXPECT_EQ(cluster.Node(0).Report().probe_address, IpAddress::Parse("fd00:100::1"));

  cluster.Switch().Drop([](const Passing& passing) { return passing.size > 1300; });
  cluster.Rounds(4);
  EXPECT_EQ(cluster.State(0, 1), "mtu");
  EXPECT_EQ(cluster.State(2, 1), "mtu");
  cluster.Switch().Drop([](const Passing& passing) {
    return passing.from == 0 && passing.to == 1 && passing.source_port != 0;
  });
  cluster.Rounds(4);
  EXPECT_EQ(cluster.State(0, 1), "oneWay");
  EXPECT_EQ(cluster.State(1, 0), "silent");
  EXPECT_EQ(cluster.State(0, 2), "reachable");
  cluster.Switch().Drop(nullptr);
  cluster.Rounds(5);
  for (int node = 0; node < ReachabilityCluster::kNodes; ++node)
    EXPECT_EQ(cluster.Rail(node), "reachable") << cluster.Node(node).Report().because;
}

}  // namespace
}  // namespace railhead::testing
