// The settings of probes, and the endpoints that send them.
#include "deviceplugin/services/reachability/reachability_settings.h"

#include <gtest/gtest.h>

#include "cni/fabric/fabric.h"
#include "cni/fabric/probe_endpoint_mac.h"

namespace railhead::testing {
namespace {

TEST(ReachabilitySettingsTest, IsOffUnlessAsked) {
  EXPECT_FALSE(reachability::ParseReachabilitySettings("", "f")->enabled);
  EXPECT_FALSE(reachability::ParseReachabilitySettings("false", "f")->enabled);
  const auto given = reachability::ParseReachabilitySettings(
      R"({"intervalSeconds": 5, "peers": 2, "port": 999, "podSeconds": 0})", "f");
  ASSERT_TRUE(given);
  EXPECT_TRUE(given->enabled);
  EXPECT_EQ(given->interval, std::chrono::seconds(5));
  EXPECT_EQ(given->pods.count(), 0);
  EXPECT_EQ(given->port, 999);
  EXPECT_EQ(given->paths, reachability::ReachabilitySettings().paths);
}

TEST(ReachabilitySettingsTest, NamesWhatIsWrong) {
  std::vector<Error> all;
  EXPECT_FALSE(reachability::ParseReachabilitySettings(R"({"paths": 0, "prot": 1})", "fabric.json", &all));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NE(all[0].message.find("/reachability/paths"), std::string::npos) << all[0].message;
  EXPECT_NE(all[1].message.find("/reachability/prot"), std::string::npos) << all[1].message;
}

Result<Fabric> WithProbeAddresses(const std::string& addresses) {
  return ParseFabric(R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24",
      "gateway": "10.100.0.254", "probeAddresses": )" +
                         addresses + "}]}",
                     "fabric.json");
}

TEST(ProbeAddressesTest, AreKeptFromPods) {
  const auto fabric = WithProbeAddresses(R"({"node0": "10.100.0.1", "node1": "10.100.0.2"})");
  ASSERT_TRUE(fabric);
  const Rail& rail = fabric->rails[0];
  EXPECT_EQ(rail.probe_addresses.at("node1"), *IpAddress::Parse("10.100.0.2"));
  EXPECT_EQ(rail.Excluded().size(), 2U);
  EXPECT_TRUE(rail.Excluded()[0].Contains(*IpAddress::Parse("10.100.0.1")));
}

TEST(ProbeAddressesTest, FitTheRail) {
  for (const char* wrong : {R"({"a": "10.101.0.1"})", R"({"a": "10.100.0.254"})", R"({"a": "x"})",
                            R"({"a": 1})", R"({"a": "10.100.0.1", "b": "10.100.0.1"})"}) {
    const auto fabric = WithProbeAddresses(wrong);
    ASSERT_FALSE(fabric) << wrong;
    EXPECT_NE(fabric.error().message.find("/rails/0/probeAddresses"), std::string::npos)
        << fabric.error().message;
  }
}

Result<Fabric> WithNodes(const std::string& addresses, const std::string& subnet = "10.100.0.0/24") {
  return ParseFabric(
      R"({"version": 1, "nodes": {"a": 0, "b": 7}, "rails": [{"name": "rail0", "pf": "pf0", "subnet": ")" +
          subnet + R"(", "probeAddresses": )" + addresses + "}]}",
      "fabric.json");
}

TEST(ProbeAddressesTest, OfARangeGoByIndex) {
  for (const char* range : {R"("10.100.0.200-10.100.0.250")", R"("10.100.0.200/29")"}) {
    const auto fabric = WithNodes(range);
    ASSERT_TRUE(fabric) << fabric.error().message;
    const auto addresses = fabric->rails[0].ProbeAddressesOf(fabric->nodes);
    EXPECT_EQ(addresses, (std::map<std::string, IpAddress>{{"a", *IpAddress::Parse("10.100.0.200")},
                                                           {"b", *IpAddress::Parse("10.100.0.207")}}));
    EXPECT_TRUE(fabric->rails[0].Excluded().at(0).Contains(*IpAddress::Parse("10.100.0.205")))
        << "for nodes to come";
  }
  const auto v6 = WithNodes(R"("fd00::100/120")", "fd00::/64");
  ASSERT_TRUE(v6) << v6.error().message;
  EXPECT_EQ(v6->rails[0].ProbeAddressesOf(v6->nodes).at("b"), *IpAddress::Parse("fd00::107"));
}

TEST(ProbeAddressesTest, OfARangeFitTheRailAndItsNodes) {
  for (const auto& [wrong, why] : std::map<std::string, std::string>{
           {R"("10.100.0.200-10.100.0.206")", "no address for node 'b' with index 7"},
           {R"("10.100.0.250-10.100.1.10")", "outside"},
           {R"("10.100.0.0/28")", "first or last"},
           {R"("10.100.0.248/29")", "first or last"},
           {R"("x")", "is not an address, range or prefix"},
           {"5", "/probeAddresses"}}) {
    const auto fabric = WithNodes(wrong);
    ASSERT_FALSE(fabric) << wrong;
    EXPECT_NE(fabric.error().message.find("/rails/0/probeAddresses"), std::string::npos)
        << fabric.error().message;
    EXPECT_NE(fabric.error().message.find(why), std::string::npos) << fabric.error().message;
  }
  const auto unlisted = WithProbeAddresses(R"("10.100.0.200-10.100.0.250")");
  ASSERT_FALSE(unlisted);
  EXPECT_NE(unlisted.error().message.find("needs an index"), std::string::npos) << unlisted.error().message;
  EXPECT_NE(unlisted.error().hint.find("i-th address"), std::string::npos) << unlisted.error().hint;
  const auto with_claims = [](const std::string& addresses) {
    return ParseFabric(
        R"({"version": 1, "rails": [{"name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeBlock": 28,
            "probeAddresses": )" +
            addresses + R"(}], "addresses": {"index": {"from": "kubernetes"}}})",
        "fabric.json");
  };
  const auto claimed = with_claims(R"("10.100.0.200-10.100.0.250")");
  ASSERT_TRUE(claimed) << claimed.error().message;
  // No file says how many nodes come.
  EXPECT_EQ(claimed->rails[0].ProbeAddressesOf({{"first", 0}, {"last", 50}, {"above", 51}}),
            (std::map<std::string, IpAddress>{{"first", *IpAddress::Parse("10.100.0.200")},
                                              {"last", *IpAddress::Parse("10.100.0.250")}}));
  EXPECT_TRUE(with_claims(R"({"a": "10.100.0.200"})"));
  EXPECT_NE(WithProbeAddresses(R"("10.100.0.250-10.100.0.254")").error().message.find("gateway"),
            std::string::npos);
}

TEST(ProbeEndpointMacTest, IsTheSameAlwaysAndNobodyElses) {
  const MacAddress mac = ProbeEndpointMac("node0", "rail0");
  EXPECT_EQ(mac, ProbeEndpointMac("node0", "rail0"));
  EXPECT_NE(mac, ProbeEndpointMac("node1", "rail0"));
  EXPECT_NE(mac, ProbeEndpointMac("node0", "rail1"));
  EXPECT_EQ(mac.bytes[0] & 3U, 2U) << "one endpoint's, locally administered";
  EXPECT_EQ(mac.ToString(), "7e:10:1a:33:e1:85") << "nodes of two releases answer each other";
}

}  // namespace
}  // namespace railhead::testing
