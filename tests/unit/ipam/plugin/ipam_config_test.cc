// railhead-ipam and what it is configured with.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"
#include "tests/unit/ipam/plugin/bad_config.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

// railhead-ipam and bad input: a CNI error that names the field, nothing made.

struct Bad {
  const char* name;
  const char* ipam;   // merged into a sound `ipam` object; null removes a field
  const char* error;  // must be in it
};

std::ostream& operator<<(std::ostream& out, const Bad& bad) {
  return out << bad.name;
}

json Sound() {
  return {{"cniVersion", "1.0.0"},
          {"name", "rail0"},
          {"type", "macvlan"},
          {"ipam", {{"type", "railhead-ipam"}, {"subnet", "10.0.0.0/24"}, {"gateway", "10.0.0.1"}}}};
}

class BadInput : public ::testing::TestWithParam<Bad> {};

TEST_P(BadInput, IsRefused) {
  const ScratchRoot scratch;
  json config = Sound();
  config["ipam"].merge_patch(json::parse(GetParam().ipam));
  const Answer answer = RunIpam(scratch.path(), {"ADD", "abc", config.dump()});
  const std::string error = answer.Error();
  EXPECT_EQ(error.substr(0, 3), "7: ") << error;
  EXPECT_NE(error.find(GetParam().error), std::string::npos) << error;
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "something was made";
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadInput,
    ::testing::Values(
        Bad{"GatewayOutside", R"({"gateway": "10.0.1.1"})", "gateway 10.0.1.1 is not in subnet 10.0.0.0/24"},
        Bad{"GatewayNoAddress", R"({"gateway": "10.0.0"})", "/ipam/gateway: '10.0.0' is not an IP address"},
        Bad{"GatewayWrongType", R"({"gateway": 1})", "/ipam/gateway: is not a string"},
        Bad{"SubnetNoPrefix", R"({"subnet": "10.0.0.0"})",
            "/ipam/subnet: '10.0.0.0' is not an address with prefix length"},
        Bad{"SubnetHostBits", R"({"subnet": "10.0.0.7/24"})", "write 10.0.0.0/24"},
        Bad{"SubnetMissing", R"({"subnet": null})",
            "/ipam: has none of 'rail', 'subnet', 'ranges' and 'links'"},
        Bad{"RailAndSubnet", R"({"rail": "rail0"})", "/ipam/subnet: cannot be given together with 'rail'"},
        Bad{"Misspelt", R"({"rangeStrat": "10.0.0.5"})",
            "/ipam/rangeStrat: unknown field; did you mean 'rangeStart'?"},
        Bad{"Unknown", R"({"frobnicate": true})", "/ipam/frobnicate: unknown field"},
        Bad{"RangeOutside", R"({"rangeEnd": "10.0.1.5"})", "is not in subnet 10.0.0.0/24"},
        Bad{"RangeReversed", R"({"rangeStart": "10.0.0.9", "rangeEnd": "10.0.0.5"})",
            "rangeStart 10.0.0.9 is not before rangeEnd 10.0.0.5"},
        Bad{"RangeOfTheOtherFamily", R"({"rangeStart": "fd00::1"})", "rangeStart fd00::1"},
        Bad{"ExcludeNoRange", R"({"exclude": ["10.0.0.3", "10.0.0.x"]})",
            "/ipam/exclude/1: '10.0.0.x' is not an address, range or prefix"},
        Bad{"ExcludeNoList", R"({"exclude": "10.0.0.3"})", "/ipam/exclude: is not a list of strings"},
        Bad{"ExcludeEverything", R"({"exclude": ["10.0.0.0/24"]})", "has no address left"},
        Bad{"RouteWithoutDestination", R"({"routes": [{"gw": "10.0.0.1"}]})",
            "/ipam/routes/0/dst: is required"},
        Bad{"RouteGatewayOutside", R"({"routes": [{"dst": "10.0.0.0/8", "gw": "10.9.0.1"}]})",
            "gw 10.9.0.1 is not in"},
        Bad{"RouteUnknownField", R"({"routes": [{"dst": "10.0.0.0/8", "via": "x"}]})",
            "/ipam/routes/0/via: unknown"},
        Bad{"RoutesNoList", R"({"routes": {"dst": "10.0.0.0/8"}})", "/ipam/routes: is not a list"},
        Bad{"ReuseDelayNegative", R"({"reuseDelaySeconds": -1})",
            "/ipam/reuseDelaySeconds: -1 is out of range"},
        Bad{"ReuseDelayFraction", R"({"reuseDelaySeconds": 1.5})",
            "/ipam/reuseDelaySeconds: is not an integer"},
        Bad{"ReuseDelayHuge", R"({"reuseDelaySeconds": 18446744073709551615})", "/ipam/reuseDelaySeconds"},
        Bad{"ReuseDelayText", R"({"reuseDelaySeconds": "60"})",
            "/ipam/reuseDelaySeconds: is not an integer"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

std::string AddWith(const std::string& config) {
  const ScratchRoot scratch;
  const std::string error = RunIpam(scratch.path(), {"ADD", "abc", config}).Error();
  return std::filesystem::is_empty(scratch.path()) ? error : "something was made; " + error;
}

TEST(BadConfiguration, NoJsonAndNoObject) {
  for (const char* text : {"", "{", "[]", "7", R"({"cniVersion": "1.0.0", "name": "a",})", "\xff\xfe"}) {
    const std::string error = AddWith(text);
    EXPECT_TRUE(error.substr(0, 2) == "6:" || error.substr(0, 2) == "7:") << text << " -> " << error;
  }
}

TEST(BadConfiguration, TheIpamObject) {
  json config = Sound();
  config.erase("ipam");
  EXPECT_EQ(AddWith(config.dump()).substr(0, 2), "7:") << AddWith(config.dump());
  config["ipam"] = "railhead-ipam";
  EXPECT_NE(AddWith(config.dump()).find("/ipam: is not an object"), std::string::npos)
      << AddWith(config.dump());
}

TEST(BadConfiguration, TwiceTheSameField) {
  const std::string config =
      R"({"cniVersion": "1.0.0", "name": "a", "ipam": {"type": "railhead-ipam", "subnet": "10.0.0.0/24", "subnet": "10.0.1.0/24"}})";
  EXPECT_NE(AddWith(config).find("/subnet: is there twice"), std::string::npos) << AddWith(config);
}

TEST(BadConfiguration, Oversized) {
  json config = Sound();
  config["comment"] = std::string(3 << 20, 'x');
  EXPECT_EQ(AddWith(config.dump()).substr(0, 2), "6:") << AddWith(config.dump());
}

TEST(BadConfiguration, TooDeep) {
  const std::string config = R"({"cniVersion": "1.0.0", "name": "a", "ipam": )" + std::string(100'000, '[') +
                             std::string(100'000, ']') + "}";
  EXPECT_EQ(AddWith(config).substr(0, 2), "6:") << AddWith(config);
}

TEST(BadConfiguration, VersionsThatAreNotSupported) {
  json config = Sound();
  for (const char* version : {"0.1.0", "0.2.0", "1.2.0", "2", ""}) {
    config["cniVersion"] = version;
    EXPECT_EQ(AddWith(config.dump()).substr(0, 2), "1:") << version << ": " << AddWith(config.dump());
  }
}

TEST(BadStore, IsNamedWithTheWayOut) {
  const ScratchRoot scratch;
  scratch.Write("/var/lib/railhead/ipam/store.mdb", std::string(9000, 'x'));
  for (const char* command : {"ADD", "DEL", "CHECK"}) {
    const std::string error = RunIpam(scratch.path(), {command, "abc", Sound().dump()}).Error();
    EXPECT_EQ(error.substr(0, 2), "5:") << error;
    EXPECT_NE(error.find(scratch.StorePath()), std::string::npos) << error;
    EXPECT_NE(error.find("move it away"), std::string::npos) << error;
  }
}

// railhead-ipam with configurations of host-local and whereabouts: only "type" is another.

json ConfigOf(const char* ipam) {
  return {{"cniVersion", "1.0.0"}, {"name", "net"}, {"type", "macvlan"}, {"ipam", json::parse(ipam)}};
}

// An address of a router that the call names would cut its network off.
struct NextHop {
  const char* name;
  const char* config;  // merged into a network whose pool has 10.0.0.1 to 10.0.0.6, or fd00::1 to fd00::7
  const char* hop;
  int others;  // addresses of the pool
};

std::ostream& operator<<(std::ostream& out, const NextHop& hop) {
  return out << hop.name;
}

class NextHops : public ::testing::TestWithParam<NextHop> {};

TEST_P(NextHops, AreGivenToNoPod) {
  const ScratchRoot scratch;
  json config = {{"cniVersion", "1.0.0"},
                 {"name", "rail0"},
                 {"type", "railhead"},
                 {"ipam", {{"type", "railhead-ipam"}, {"subnet", "10.0.0.0/29"}}}};
  config.merge_patch(json::parse(GetParam().config));
  for (int pod = 0; pod < GetParam().others; ++pod) {
    const Answer answer = RunIpam(scratch.path(), {"ADD", "c" + std::to_string(pod), config.dump()});
    ASSERT_EQ(answer.status, 0) << pod << ": " << answer.out;
    EXPECT_EQ(answer.out.find("\"address\": \"" + std::string(GetParam().hop) + "/"), std::string::npos)
        << answer.out;
    EXPECT_EQ(answer.out.find("\"address\":\"" + std::string(GetParam().hop) + "/"), std::string::npos)
        << answer.out;
  }
  const Answer full = RunIpam(scratch.path(), {"ADD", "one-more", config.dump()});
  EXPECT_EQ(full.status, 1) << "the router's address is no address of the pool: " << full.out;
}

INSTANTIATE_TEST_SUITE_P(
    Places, NextHops,
    ::testing::Values(NextHop{"OfTheNetwork", R"({"gateway": "10.0.0.3"})", "10.0.0.3", 5},
                      NextHop{"OfTheIpam", R"({"ipam": {"gateway": "10.0.0.6"}})", "10.0.0.6", 5},
                      NextHop{"OfARoute",
                              R"({"ipam": {"routes": [{"dst": "10.9.0.0/16", "gw": "10.0.0.2"}]}})",
                              "10.0.0.2", 5},
                      NextHop{"OfARange",
                              R"({"ipam": {"subnet": null, "ranges":
                                  [[{"subnet": "10.0.0.0/29", "gateway": "10.0.0.5"}]]}})",
                              "10.0.0.5", 5},
                      NextHop{"OfTheOtherFamily", R"({"gateway": "fd00::3"})", "10.0.0.7", 6},
                      NextHop{"OfTheNetworkInIpv6",
                              R"({"gateway": "fd00::3", "ipam": {"subnet": "fd00::/125"}})", "fd00::3", 6},
                      NextHop{"NoneBecauseItIsEmpty", R"({"gateway": ""})", "10.0.0.7", 6}),
    [](const auto& named) { return named.param.name; });

class PeersTest : public ::testing::Test {
 protected:
  Answer Add(const std::string& container, const json& config) {
    return RunIpam(scratch_.path(), {"ADD", container, config.dump()});
  }
  std::string Addresses(const std::string& container, const char* ipam) {
    return Add(container, ConfigOf(ipam)).Addresses();
  }
  void WriteNodes(const std::string& nodes) {
    scratch_.Write("/etc/railhead/node-name", "beta\n");
    scratch_.Write("/etc/railhead/fabric.json",
                   R"({"version": 1, "rails": [{"name": "rail0", "pf": 0}], "nodes": )" + nodes + "}");
  }

  ScratchRoot scratch_;
};

TEST_F(PeersTest, HostLocal) {
  scratch_.Write("/etc/dns.conf",
                 "# comment\n; another\nnameserver 10.0.0.53\nnameserver  fd00::53 \n\tdomain example.org\n"
                 "search a.example b.example\nsearch c.example\noptions ndots:5 edns0\nsortlist 10.0.0.0\n"
                 "nameserver\n");
  const json config =
      ConfigOf(R"({"type": "host-local", "dataDir": "/var/lib/cni/x", "resolvConf": "/etc/dns.conf",
    "ranges": [[{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.20", "rangeEnd": "10.1.0.30"}]],
    "routes": [{"dst": "0.0.0.0/0"}]})");
  const Answer added = Add("a", config);
  EXPECT_EQ(added.Addresses(), "10.1.0.20/24 via 10.1.0.1");
  EXPECT_EQ(added.Json()["routes"], json::parse(R"([{"dst": "0.0.0.0/0"}])"));
  EXPECT_EQ(added.Json()["dns"],
            json::parse(R"({"nameservers": ["10.0.0.53", "fd00::53"], "domain": "example.org",
                            "search": ["a.example", "b.example", "c.example"],
                            "options": ["ndots:5", "edns0"]})"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() + "/var/lib/cni/x"));
  std::filesystem::remove(scratch_.path() + "/etc/dns.conf");
  EXPECT_EQ(Add("b", config)
                .Error()
                .rfind("101: network configuration: /ipam: resolvConf: /etc/dns.conf does not exist", 0),
            0U);
  EXPECT_EQ(RunIpam(scratch_.path(), {"DEL", "a", config.dump()}).status, 0);
}

TEST_F(PeersTest, WhereaboutsWithEverythingThatItReads) {
  const json config = ConfigOf(R"({"type": "whereabouts", "range": "192.168.2.225/28",
    "range_start": "192.168.2.228", "range_end": "192.168.2.236", "gateway": "192.168.2.229",
    "exclude": ["192.168.2.228/32", "192.168.2.230/31"], "routes": [{"dst": "10.0.0.0/8", "gw": "192.168.2.229"}],
    "dns": {"nameservers": ["10.0.0.53"], "domain": "d", "search": ["s"], "options": ["o"]},
    "addresses": [{"address": "10.10.0.254/24", "gateway": "10.10.0.1"}],
    "network_name": "n", "enable_overlapping_ranges": false, "node_slice_size": "",
    "leader_lease_duration": 1500, "leader_renew_deadline": 1000, "leader_retry_period": 500,
    "log_file": "/tmp/x.log", "log_level": "debug", "reconciler_cron_expression": "30 4 * * *",
    "sleep_for_race": 0, "kubernetes": {"kubeconfig": "/etc/x"}, "configuration_path": "/etc/y",
    "datastore": "kubernetes", "etcd_host": "h", "etcd_username": "u", "etcd_password": "p",
    "etcd_key_file": "k", "etcd_cert_file": "c", "etcd_ca_cert_file": "ca"})");
  const Answer added = Add("a", config);
  EXPECT_EQ(added.Addresses(), "192.168.2.232/28 via 192.168.2.229, 10.10.0.254/24 via 10.10.0.1");
  EXPECT_EQ(added.Json()["dns"], config["ipam"]["dns"]);
  EXPECT_EQ(Add("b", config).Addresses().substr(0, 16), "192.168.2.233/28") << "in our order";
}

// The fields without "omitempty" of whereabouts' IPAMConfig (pkg/types/types.go) and of host-local's
// (plugins/ipam/host-local/backend/allocator/config.go), as Go writes them when nobody has set them.
TEST_F(PeersTest, WhatGoWritesForNothing) {
  EXPECT_EQ(
      Addresses("a", R"({"type": "whereabouts", "routes": null, "datastore": "", "ipRanges": null, "dns": {},
                "range": "192.168.6.0/24", "gateway": "", "log_file": "", "log_level": "", "kubernetes": {},
                "configuration_path": ""})"),
      "192.168.6.1/24");
  EXPECT_EQ(Addresses("b", R"({"type": "whereabouts", "routes": null, "datastore": "",
                "ipRanges": [{"exclude": null, "range": "192.168.7.0/24"}], "dns": {}, "range": "", "gateway": "",
                "log_file": "", "log_level": "", "kubernetes": {}, "configuration_path": ""})"),
            "192.168.7.1/24");
  EXPECT_EQ(Addresses("c", R"({"type": "host-local", "routes": null, "dataDir": "", "resolvConf": "",
                "ranges": [[{"subnet": "192.168.8.0/24"}]]})"),
            "192.168.8.2/24 via 192.168.8.1");
  EXPECT_EQ(
      Addresses("d", R"({"type": "host-local", "subnet": "192.168.9.0/24", "routes": null, "dataDir": "",
                "resolvConf": "", "ranges": null})"),
      "192.168.9.1/24");
}

TEST_F(PeersTest, AnEmptyAddressIsNone) {
  EXPECT_EQ(
      Addresses("a", R"({"range": "192.168.7.0/24", "range_start": "", "range_end": "", "gateway": ""})"),
      "192.168.7.1/24");
  EXPECT_EQ(
      Addresses("b", R"({"ranges": [[{"subnet": "192.168.8.0/24", "rangeStart": "", "gateway": ""}]]})"),
      "192.168.8.2/24 via 192.168.8.1");
}

TEST_F(PeersTest, WhereaboutsRanges) {
  EXPECT_EQ(Addresses("a", R"({"range": "192.168.2.10-192.168.2.11/24"})"), "192.168.2.10/24");
  EXPECT_EQ(Addresses("b", R"({"range": "192.168.2.10-192.168.2.11/24"})"), "192.168.2.11/24");
  EXPECT_EQ(Addresses("c", R"({"range": "192.168.3.0/24", "ipRanges": [
              {"range": "fd00::7/64", "range_start": "fd00::20", "exclude": ["fd00::20"]},
              {"range": "192.168.4.5-192.168.4.9/24"}], "gateway": "192.168.4.1"})"),
            "192.168.3.1/24, fd00::21/64, 192.168.4.5/24 via 192.168.4.1");
  EXPECT_EQ(Addresses("d", R"({"ipRanges": [{"range": "192.168.5.0/24"}], "exclude": ["192.168.5.1"]})"),
            "192.168.5.2/24");
}

// whereabouts keeps its ranges for the whole cluster: no two nodes may give the same.
TEST_F(PeersTest, EachNodeGivesFromItsSlice) {
  WriteNodes(R"({"alpha": 0, "beta": 2})");
  EXPECT_EQ(Addresses("a", R"({"range": "10.1.0.0/16", "node_slice_size": "/24"})"), "10.1.2.0/16");
  EXPECT_EQ(Addresses("b", R"({"range": "10.2.0.0/16", "node_slice_size": "24", "range_start": "10.2.2.7"})"),
            "10.2.2.7/16");
  EXPECT_EQ(Add("c", ConfigOf(R"({"range": "10.3.0.0/16"})")).Error(),
            "7: network configuration: /ipam: all nodes would give the same addresses of 10.3.0.0/16; give "
            "node_slice_size, or make it a rail of the fabric with nodeBlock or nodeRanges");
  for (const char* ipam : {R"({"range": "10.3.0.0/16", "node_slice_size": "/24", "range_end": "10.3.1.255"})",
                           R"({"range": "10.3.0.0/16", "node_slice_size": "/15"})",
                           R"({"range": "10.3.0.0/24", "node_slice_size": "/24"})"}) {
    const std::string error = Add("c", ConfigOf(ipam)).Error();
    EXPECT_NE(error.find(" that is this node's, number 2; widen the range"), std::string::npos) << error;
  }
  WriteNodes(R"({"alpha": 0, "gamma": 2})");
  EXPECT_EQ(Add("c", ConfigOf(R"({"range": "10.3.0.0/16", "node_slice_size": "/24"})"))
                .Error()
                .rfind("7: network configuration: /ipam: node 'beta' has no index", 0),
            0U);
  WriteNodes(R"({"beta": 2})");
  EXPECT_EQ(Addresses("c", R"({"range": "10.3.0.0/16"})"), "10.3.0.1/16");
}

class BadPeers : public BadConfigTest {};

TEST_P(BadPeers, AreRefused) {
  ExpectRefused();
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadPeers,
    ::testing::Values(
        BadConfig{"RangeNoPrefix", R"({"range": "10.0.0.1"})", "/ipam/range: '10.0.0.1' is not a range"},
        BadConfig{"RangeStartElsewhere", R"({"range": "10.1.0.1-10.0.0.9/24"})",
                  "/ipam/range: '10.1.0.1-10.0"},
        BadConfig{"RangeReversed", R"({"range": "10.0.0.9-10.0.0.1/24"})",
                  "rangeStart 10.0.0.9 is not before"},
        BadConfig{"EndOutside", R"({"range": "10.0.0.0/24", "range_end": "10.0.1.9"})", "is not in subnet"},
        BadConfig{"NoRange", R"({"ipRanges": [{"range_start": "10.0.0.1"}]})",
                  "/ipam/ipRanges/0/range: is required"},
        BadConfig{"UnknownInRanges", R"({"ipRanges": [{"range": "10.0.0.0/24", "rnage_end": "10.0.0.9"}]})",
                  "/ipam/ipRanges/0/rnage_end: unknown field; did you mean 'range_end'?"},
        BadConfig{"Unknown", R"({"range": "10.0.0.0/24", "leader_leas_duration": 3})",
                  "/ipam/leader_leas_duration: unknown field; did you mean 'leader_lease_duration'?"},
        BadConfig{"Slice", R"({"range": "10.0.0.0/24", "node_slice_size": "/x"})",
                  "/ipam/node_slice_size: '/x' is not a prefix length"},
        BadConfig{"DnsUnknown", R"({"range": "10.0.0.0/24", "dns": {"nameserver": ["x"]}})",
                  "/ipam/dns/nameserver: unknown field; did you mean 'nameservers'?"},
        BadConfig{"DnsType", R"({"range": "10.0.0.0/24", "dns": {"search": "x"}})",
                  "/ipam/dns/search: is not a list of strings"},
        BadConfig{"DnsTwice", R"({"range": "10.0.0.0/24", "dns": {}, "resolvConf": "/etc/resolv.conf"})",
                  "/ipam/resolvConf: cannot be given together with 'dns'"},
        BadConfig{"AddressMissing", R"({"range": "10.0.0.0/24", "addresses": [{}]})",
                  "/ipam/addresses/0/address: is required"},
        BadConfig{"AddressNoPrefix", R"({"range": "10.0.0.0/24", "addresses": [{"address": "10.0.0.1"}]})",
                  "/ipam/addresses/0/address: '10.0.0.1' is not an address with"},
        BadConfig{"BesideRail", R"({"range": "10.0.0.0/24", "rail": "rail0"})",
                  "/ipam/range: cannot be given together with 'rail'"},
        BadConfig{"BesideLinks",
                  R"({"ipRanges": [{"range": "10.0.0.0/24"}], "links": [{"ifname": "a", "rail": "r"}]})",
                  "/ipam/ipRanges: cannot be given together with 'links'"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace railhead::testing
