// The ipam of networks: what a rail says for them, and what they go on saying by themselves.
#include "tests/unit/deviceplugin/tools/migrate/suite.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kFile = "nad_train_net.json";
constexpr const char* kSource = "NetworkAttachmentDefinition train/net";

migrate::Outcome WithIpam(const std::string& ipam, const migrate::Options& options = {}) {
  const std::string config = R"({"cniVersion": "1.0.0", "type": "sriov", "ipam": )" + ipam + "}";
  return Migrated(
      {DeviceConfigOf({{"net0", "ens1f0"}}), NetworkObject("net", "nvidia.com/net0", config).dump()},
      options);
}

std::string OutcomeAt(const migrate::Outcome& outcome, const std::string& key) {
  return KeyOutcomeOf(outcome, kSource, "/spec/config/ipam" + key);
}

// The rail but for what it is.
Json AddressesOfRail(const migrate::Outcome& outcome) {
  Json rail = FileOf(outcome, "fabric.json")["rails"][0];
  rail.erase("name");
  rail.erase("pf");
  return rail;
}

constexpr const char* kWhereabouts =
    R"({"type": "whereabouts", "range": "10.57.0.0/16", "range_start": "10.57.0.10",
    "range_end": "10.57.9.255", "exclude": ["10.57.1.0/24", "10.57.2.7"], "gateway": "10.57.255.254",
    "routes": [{"dst": "10.0.0.0/8"}, {"dst": "172.16.0.0/12", "gw": "10.57.255.254"}], "log_level": "debug",
    "kubernetes": {"kubeconfig": "/etc/x"}, "network_name": "a", "dns": {"nameservers": ["10.0.0.2"]}})";

TEST(Addresses, WhereaboutsRangeBecomesTheRailsSubnet) {
  const auto outcome = WithIpam(kWhereabouts);
  EXPECT_EQ(AddressesOfRail(outcome), Json::parse(R"({"subnet": "10.57.0.0/16", "gateway": "10.57.255.254",
      "routes": ["10.0.0.0/8", "172.16.0.0/12"],
      "exclude": ["10.57.1.0-10.57.1.255", "10.57.2.7", "10.57.0.0-10.57.0.9", "10.57.10.0-10.57.255.255"]})"));
  EXPECT_EQ(ConfigOfFile(outcome, kFile)["ipam"],
            Json::parse(R"({"type": "railhead-ipam", "dns": {"nameservers": ["10.0.0.2"]}})"));
  EXPECT_EQ(OutcomeAt(outcome, "/range").rfind("needsDecision to /rails/0/subnet", 0), 0U)
      << "whose addresses are they?";
  EXPECT_EQ(OutcomeAt(outcome, "/range_end"),
            "changed to /rails/0/exclude of fabric.json, which has the rest of the subnet");
  EXPECT_EQ(OutcomeAt(outcome, "/kubernetes/kubeconfig").rfind("dropped", 0), 0U);
  EXPECT_EQ(OutcomeAt(outcome, "/dns/nameservers"), "kept as it is, of railhead-ipam");
}

TEST(Addresses, BlocksOfNodesThatClaimIndicesTakeTheDecision) {
  migrate::Options options;
  options.nodes = 1000;
  const auto outcome = WithIpam(kWhereabouts, options);
  EXPECT_EQ(FileOf(outcome, "fabric.json")["addresses"]["index"]["from"], "kubernetes");
  EXPECT_EQ(AddressesOfRail(outcome)["nodeBlock"], 28);
  EXPECT_EQ(
      OutcomeAt(outcome, "/range"),
      "changed to /rails/0/subnet of fabric.json, of which each node has a block (/rails/0/nodeBlock: 28)");
  EXPECT_FALSE(outcome.report.NeedsDecision());
}

TEST(Addresses, ASubnetThatIsTooSmallForTheNodesNeedsADecision) {
  migrate::Options options;
  options.nodes = 40;
  const auto outcome = WithIpam(R"({"type": "whereabouts", "range": "10.57.0.0/24"})", options);
  EXPECT_EQ(AddressesOfRail(outcome), Json::parse(R"({"subnet": "10.57.0.0/24"})"));
  EXPECT_TRUE(FileOf(outcome, "fabric.json")["addresses"].is_null());
  EXPECT_EQ(OutcomeAt(outcome, "/range"),
            "needsDecision to /rails/0/subnet of fabric.json, which is too small: 256 addresses for 40 nodes "
            "with 8 VFs each");
}

TEST(Addresses, NodeSlicesAreBlocksOfNodes) {
  const auto outcome = WithIpam(
      R"({"type": "whereabouts", "range": "10.57.0.0/16", "node_slice_size": "/26", "enable_overlapping_ranges": false})");
  EXPECT_EQ(AddressesOfRail(outcome), Json::parse(R"({"subnet": "10.57.0.0/16", "nodeBlock": 26})"));
  EXPECT_EQ(OutcomeAt(outcome, "/range"), "changed to /rails/0/subnet of fabric.json");
  EXPECT_EQ(OutcomeAt(outcome, "/node_slice_size").rfind("needsDecision to /rails/0/nodeBlock", 0), 0U);
}

TEST(Addresses, TwoFamiliesStayInTheNetwork) {
  const auto outcome = WithIpam(
      R"({"type": "whereabouts", "ipRanges": [{"range": "10.57.0.0/16"}, {"range": "fd00::/64", "exclude": ["fd00::1/128"]}]})");
  EXPECT_EQ(AddressesOfRail(outcome), Json::object());
  EXPECT_EQ(ConfigOfFile(outcome, kFile)["ipam"]["ipRanges"][1]["range"], "fd00::/64");
  EXPECT_EQ(OutcomeAt(outcome, "/ipRanges/0/range").rfind("needsDecision", 0), 0U);
}

TEST(Addresses, HostLocalIsOneNodes) {
  const std::string ipam =
      R"({"type": "host-local", "ranges": [[{"subnet": "10.56.0.0/16", "rangeStart": "10.56.1.10",
      "rangeEnd": "10.56.1.99"}]], "routes": [{"dst": "10.0.0.0/8"}], "dataDir": "/run/addresses"})";
  migrate::Options options;
  options.node = "gpu-1";
  const auto outcome = WithIpam(ipam, options);
  EXPECT_EQ(AddressesOfRail(outcome),
            Json::parse(R"({"subnet": "10.56.0.0/16", "gateway": "10.56.0.1", "routes": ["10.0.0.0/8"],
      "nodeRanges": {"gpu-1": "10.56.1.10-10.56.1.99"}})"))
      << "host-local takes the first address for the gateway";
  EXPECT_FALSE(ConfigOfFile(outcome, kFile).contains("ipam")) << "the rail's subnet counts";
  EXPECT_FALSE(outcome.report.NeedsDecision());
  // Without a node's name in the options, each node keeps the whole range.
  const auto of_all = WithIpam(ipam);
  EXPECT_EQ(AddressesOfRail(of_all), Json::object());
  EXPECT_EQ(ConfigOfFile(of_all, kFile)["ipam"]["type"], "railhead-ipam");
  EXPECT_EQ(ConfigOfFile(of_all, kFile)["ipam"]["ranges"][0][0]["rangeEnd"], "10.56.1.99");
  EXPECT_FALSE(of_all.report.documents.back().remarks.empty());
}

TEST(Addresses, HostLocalsSilentGatewayIsNamed) {
  const auto outcome =
      WithIpam(R"({"type": "host-local", "subnet": "10.56.0.0/24", "resolvConf": "/etc/resolv.conf"})");
  EXPECT_EQ(ConfigOfFile(outcome, kFile)["ipam"],
            Json::parse(R"({"type": "railhead-ipam", "subnet": "10.56.0.0/24", "gateway": "10.56.0.1",
      "resolvConf": "/etc/resolv.conf"})"));
  EXPECT_NE(OutcomeAt(outcome, "/subnet").find("gateway 10.56.0.1"), std::string::npos);
}

TEST(Addresses, RoutesByOtherRoutersStayInTheNetwork) {
  const auto outcome = WithIpam(R"({"type": "whereabouts", "range": "10.57.0.0/16", "gateway": "10.57.0.1",
      "routes": [{"dst": "10.0.0.0/8", "gw": "10.57.0.2"}]})");
  EXPECT_EQ(AddressesOfRail(outcome), Json::object());
  EXPECT_EQ(ConfigOfFile(outcome, kFile)["ipam"]["routes"][0]["gw"], "10.57.0.2");
}

TEST(Addresses, StaticIsAskedAsBefore) {
  const auto outcome =
      WithIpam(R"({"type": "static", "addresses": [{"address": "10.0.0.5/24", "gateway": "10.0.0.1"}]})");
  EXPECT_EQ(ConfigOfFile(outcome, kFile)["ipam"]["type"], "static");
  EXPECT_EQ(ConfigOfFile(outcome, kFile)["ipam"]["addresses"][0]["address"], "10.0.0.5/24");
  EXPECT_FALSE(outcome.report.NeedsDecision());
}

TEST(Addresses, DhcpNeedsADecisionAndWritesNothing) {
  const auto outcome = WithIpam(R"({"type": "dhcp", "daemonSocketPath": "/run/cni/dhcp.sock"})");
  EXPECT_TRUE(FileOf(outcome, kFile).is_null());
  EXPECT_EQ(OutcomeAt(outcome, "/type").rfind("needsDecision dhcp asks on the interface in the pod", 0), 0U);
  EXPECT_EQ(OutcomeAt(outcome, "/daemonSocketPath"), "needsDecision goes with dhcp");
}

TEST(Addresses, AnUnknownKeyNeedsADecision) {
  const auto outcome =
      WithIpam(R"({"type": "whereabouts", "range": "10.57.0.0/16", "rangeStart": "10.57.0.10"})");
  EXPECT_NE(OutcomeAt(outcome, "/rangeStart").find("did you mean range_start?"), std::string::npos);
}

TEST(Addresses, OtherIpamPluginsAreAskedAsBefore) {
  const auto nv = WithIpam(R"({"type": "nv-ipam", "poolName": "pool1"})");
  EXPECT_EQ(ConfigOfFile(nv, kFile)["ipam"]["poolName"], "pool1");
  EXPECT_FALSE(nv.report.NeedsDecision());
  const auto other = WithIpam(R"({"type": "our-own"})");
  EXPECT_EQ(OutcomeAt(other, "/type").rfind("needsDecision", 0), 0U);
  EXPECT_EQ(ConfigOfFile(WithIpam("{}"), kFile)["ipam"], Json::object());
}

}  // namespace
}  // namespace railhead::testing
