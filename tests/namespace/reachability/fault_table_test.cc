// Faults of a rail, one after the other: what each node reports, after how many rounds, and when the rail
// recovers. Healthy peers must not be blamed. The test prints a table and compares it with
// docs/operate/reachability.md.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/namespace/reachability/nodes.h"

namespace railhead::testing {
namespace {

// The most rounds until a fault is found, and until it is cleared again.
constexpr int kFound = 4;
constexpr int kWell = 5;

struct Fault {
  std::string what;
  std::function<void(ReachabilityCluster&)> begin;
  std::function<void(ReachabilityCluster&)> end;  // in addition to resetting Drop and Own
  // Node 0's state of node 1, node 1's state of node 0, and the rails' states. All others have to be
  // reachable.
  std::string of_1;
  std::string of_0;
  std::string rail_0;
  std::string rail_1;
};

std::vector<Fault> Faults() {
  const auto drop = [](auto rule) {
    return [rule](ReachabilityCluster& cluster) { cluster.Switch().Drop(rule); };
  };
  const auto nothing = [](ReachabilityCluster&) {};
  return {
      {"the cable of node1 is cut", [](ReachabilityCluster& c) { c.Cable(1, false); },
       [](ReachabilityCluster& c) { c.Cable(1, true); }, "silent", "unknown", "degraded", "dead"},
      {"one-way loss: what node1 sends to others is lost",
       drop([](const Passing& f) { return f.from == 1 && f.source_port != 0; }), nothing, "silent", "oneWay",
       "degraded", "degraded"},
      {"MTU black hole: no more than 1,300 bytes to node1",
       drop([](const Passing& f) { return f.to == 1 && f.size > 1314; }), nothing, "mtu", "reachable",
       "degraded", "reachable"},
      {"one of four paths to node1 is broken",
       drop([](const Passing& f) { return f.to == 1 && f.to_port == 4795 && f.source_port % 4 == 1; }),
       nothing, "paths", "reachable", "degraded", "reachable"},
      {"a third of what is for node1 is lost",
       [](ReachabilityCluster& c) {
         c.Switch().Drop([count = std::make_shared<int>(0)](const Passing& f) {
           return f.to == 1 && f.to_port == 4795 && ++*count % 3 == 0;
         });
       },
       nothing, "lossy", "reachable", "degraded", "reachable"},
      {"the gateway is silent at node1",
       [](ReachabilityCluster& c) {
         c.Switch().Own([](int port, int vlan, const IpAddress& address) {
           return port != 1 && ReachabilityCluster::IsGateway(port, vlan, address);
         });
       },
       nothing, "reachable", "reachable", "reachable", "degraded"},
      {"the port of node1 is in another VLAN",
       drop([](const Passing& f) { return f.from == 1 || f.to == 1; }), nothing, "silent", "silent",
       "degraded", "dead"},
      {"frames with RoCE's traffic class are lost at node1",
       drop([](const Passing& f) { return f.traffic_class == 106 && (f.from == 1 || f.to == 1); }), nothing,
       "silent", "silent", "degraded", "degraded"},
  };
}

class FaultTable {
 public:
  // Counts the rounds until the fault is found, and until everything is reachable again.
  void Run(const Fault& fault) {
    fault.begin(cluster_);
    const int found = RoundsUntil(kFound, [&] { return IsFound(fault); });
    EXPECT_LE(found, kFound) << fault.what << ": " << Say();
    cluster_.Switch().Drop(nullptr);
    cluster_.Switch().Own(ReachabilityCluster::IsGateway);
    fault.end(cluster_);
    const int well = RoundsUntil(kWell, [&] { return IsWell(); });
    EXPECT_LE(well, kWell) << fault.what << ": " << Say();
    rows_ << "| " << fault.what << " | node1 `" << fault.of_1 << "`, rail `" << fault.rail_0 << "` | node0 `"
          << fault.of_0 << "`, rail `" << fault.rail_1 << "` |\n";
    std::printf("%-55s found after %d rounds, well again after %d\n", fault.what.c_str(), found, well);
  }
  [[nodiscard]] std::string rows() const { return rows_.str(); }
  bool IsWell() {
    for (int node = 0; node < ReachabilityCluster::kNodes; ++node) {
      if (cluster_.Rail(node) != "reachable") return false;
      for (int other = 0; other < ReachabilityCluster::kNodes; ++other)
        if (other != node && cluster_.State(node, other) != "reachable") return false;
    }
    return true;
  }
  int RoundsUntil(int most, const std::function<bool()>& holds) {
    for (int round = 1; round <= most; ++round) {
      cluster_.Rounds(1);
      if (holds()) return round;
    }
    return most + 1;
  }

 private:
  bool IsFound(const Fault& fault) {
    return cluster_.State(0, 1) == fault.of_1 && cluster_.State(1, 0) == fault.of_0 &&
           cluster_.Rail(0) == fault.rail_0 && cluster_.Rail(1) == fault.rail_1 &&
           cluster_.State(0, 2) == "reachable" && cluster_.State(2, 0) == "reachable";
  }
  std::string Say() {
    std::string all;
    for (int node = 0; node < ReachabilityCluster::kNodes; ++node)
      all += "node" + std::to_string(node) + " " + cluster_.Rail(node) + ": " +
             cluster_.Node(node).Report().because + "\n";
    return all;
  }

  ReachabilityCluster cluster_;
  std::ostringstream rows_;
};

TEST(FaultTableTest, IsWhatTheDocumentationSays) {
  FaultTable table;
  ASSERT_LE(table.RoundsUntil(kWell, [&] { return table.IsWell(); }), kWell);
  for (const Fault& fault : Faults()) table.Run(fault);
  std::ifstream file(DOCUMENTATION);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find(table.rows()), std::string::npos) << "docs/operate/reachability.md should have\n"
                                                        << table.rows();
}

// Six hours of rounds without a fault, in which single packets get lost: no node is ever blamed.
TEST(FaultTableTest, QuietHoursHaveNoAlarm) {
  std::map<std::string, IpAddress> nodes;
  for (int i = 0; i < 200; ++i)
    nodes["node" + std::to_string(i)] = IpAddress::V4(0x0a640001U + static_cast<unsigned>(i));
  reachability::PeerTable table;
  const auto now = reachability::PeerTable::Wall::now();
  table.SetPeers(nodes, "node0", now);
  std::mt19937_64 random(11);
  std::bernoulli_distribution is_lost(1e-3);
  std::vector<std::uint32_t> heard(table.size());
  for (int round = 0; round < 2160; ++round) {
    for (const std::size_t peer : table.Choose(4, random)) {
      reachability::BurstResult burst;
      burst.answered.assign(8, 0);
      burst.sent = 17;
      burst.large_sent = true;
      for (auto& path : burst.answered) {
        for (int i = 0; i < reachability::PeerTable::kPerPath; ++i) path += is_lost(random) ? 0 : 1;
        burst.all_answered += path;
      }
      burst.large_answered = !is_lost(random);
      burst.all_answered += burst.large_answered ? 1 : 0;
      heard[peer] += burst.all_answered;
      burst.heard = heard[peer];
      (void)table.AddResult(peer, burst, now);
      ASSERT_EQ(table.At(peer).state, reachability::PeerState::kReachable)
          << "round " << round << ": " << table.At(peer).because;
    }
  }
}

}  // namespace
}  // namespace railhead::testing
