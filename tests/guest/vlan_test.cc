// What a VF in a rail's VLAN must not be able to do: be heard as the rail's switch, or hide probe endpoints.
// Not every machine's kernel has VLANs; the guests' has.
#include <gtest/gtest.h>

#include "netns/nl/upper_links.h"
#include "netns/packet/lldp_listener.h"
#include "tests/namespace/reachability/nodes.h"
#include "tests/support/netns/lldp_frame.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

constexpr int kVlan = 100;

TEST(VlanTest, LldpOfAVlanOfThePfIsNotTheSwitchs) {
  const NetNs host = MakeNetns();
  const NetNs fabric = MakeNetns();
  const auto host_route = OpenRoute(host);
  const auto fabric_route = OpenRoute(fabric);
  const int pf = AddVeth(host, "pf0", fabric, "swp1");
  const int port = GetLink(*fabric_route, "swp1").index;
  BringUp(*host_route, pf);
  BringUp(*fabric_route, port);
  ASSERT_TRUE(Must(host_route->WaitCarrier(pf, NetDeadline())));
  const int vlan = Must(AddUpperLink(host, pf, {.name = "probe", .vlan = kVlan, .mac = {}}, host));
  BringUp(*host_route, vlan);
  auto of_pf = Must(LldpListener::Open(host, pf));
  auto of_vlan = Must(LldpListener::Open(host, vlan));
  Bytes tagged = LldpFrameOf("forged", "p");
  tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x00, kVlan});
  SendFrame(fabric, port, tagged);
  const auto arrived = Must(of_vlan.Receive(NetDeadline()));
  ASSERT_TRUE(arrived) << "it reaches the host";
  EXPECT_EQ(arrived->SwitchName(), "forged");
  SendFrame(fabric, port, LldpFrameOf("leaf3", "p"));
  const auto heard = Must(of_pf.Receive(NetDeadline()));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->SwitchName(), "leaf3");
  EXPECT_EQ(Must(of_pf.Receive({})), std::nullopt);
}

TEST(VlanTest, ForgedArpAnswersDoNotHideEndpoints) {
  ReachabilityCluster cluster;
  for (int node = 0; node < ReachabilityCluster::kNodes; ++node) {
    reachability::RailPort port = cluster.Node(node).port();
    port.rail.vlan = kVlan;
    cluster.Node(node).Set(port);
  }
  cluster.ForgeArpAnswersAt(0);
  cluster.Rounds(5);
  for (int node = 0; node < ReachabilityCluster::kNodes; ++node) {
    EXPECT_EQ(cluster.Rail(node), "reachable") << node << ": " << cluster.Node(node).Report().because;
  }
}

}  // namespace
}  // namespace railhead::testing
