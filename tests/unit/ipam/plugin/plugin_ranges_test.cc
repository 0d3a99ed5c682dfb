// railhead-ipam with several ranges: of one address, and of several.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"
#include "tests/unit/ipam/plugin/bad_config.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

class RangesTest : public ::testing::Test {
 protected:
  static json Config(const json& ipam) {
    json config{{"cniVersion", "1.0.0"}, {"name", "net"}, {"type", "macvlan"}, {"ipam", ipam}};
    config["ipam"]["type"] = "railhead-ipam";
    return config;
  }
  static json Sets(const char* ranges) { return Config({{"ranges", json::parse(ranges)}}); }
  Answer Run(const std::string& command, const std::string& container, const json& config) {
    return RunIpam(scratch_.path(), {command, container, config.dump()});
  }
  std::string Add(const std::string& container, const json& config) {
    return Run("ADD", container, config).Addresses();
  }

  ScratchRoot scratch_;
};

TEST_F(RangesTest, OneAddressOfEachSetInTheirOrder) {
  json config = Sets(R"([[{"subnet": "fd00::/64", "rangeStart": "fd00::10"}],
                         [{"subnet": "10.1.0.0/24", "gateway": "10.1.0.254"}]])");
  config["ipam"]["routes"] = {{{"dst", "0.0.0.0/0"}, {"gw", "10.1.0.254"}},
                              {{"dst", "::/0"}, {"gw", "fd00::1"}}};
  const Answer added = Run("ADD", "a", config);
  EXPECT_EQ(added.Addresses(), "fd00::10/64 via fd00::1, 10.1.0.1/24 via 10.1.0.254");
  EXPECT_EQ(added.Json()["routes"], config["ipam"]["routes"]) << "once, not for each of the sets";
  EXPECT_EQ(Add("a", config), added.Addresses());
  EXPECT_EQ(Add("b", config), "fd00::11/64 via fd00::1, 10.1.0.2/24 via 10.1.0.254");
  config["prevResult"] = added.Json();
  EXPECT_EQ(Run("CHECK", "a", config).status, 0) << Run("CHECK", "a", config).out;
  ASSERT_EQ(Run("DEL", "a", config).status, 0);
  EXPECT_EQ(Run("CHECK", "a", config).Error().rfind("101: no address of fd00::/64 is held by", 0), 0U);
}

// As host-local has it.
TEST_F(RangesTest, TheFirstAddressIsTheGatewayWhereNoneIsGiven) {
  EXPECT_EQ(Add("a", Sets(R"([[{"subnet": "10.1.0.0/30"}]])")), "10.1.0.2/30 via 10.1.0.1");
  EXPECT_EQ(Add("a", Sets(R"([[{"subnet": "10.2.0.0/31"}]])")), "10.2.0.0/31");
  EXPECT_EQ(Add("a", Sets(R"([[{"subnet": "10.3.0.0/32"}]])")), "10.3.0.0/32");
  json config = Sets(R"([[{"subnet": "10.4.0.0/24"}], [{"subnet": "fd00::/64"}]])");
  config["ipam"]["gateway"] = "10.4.0.9";
  EXPECT_EQ(Add("a", config), "10.4.0.1/24 via 10.4.0.9, fd00::2/64 via fd00::1");
}

TEST_F(RangesTest, TheNextRangeOfASetWhenTheOneBeforeIsExhausted) {
  const json config =
      Sets(R"([[{"subnet": "10.1.0.0/30"}, {"subnet": "10.2.0.0/29", "gateway": "10.2.0.6"}]])");
  EXPECT_EQ(Add("a", config), "10.1.0.2/30 via 10.1.0.1");
  EXPECT_EQ(Add("b", config), "10.2.0.1/29 via 10.2.0.6");
  EXPECT_EQ(Add("b", config), "10.2.0.1/29 via 10.2.0.6") << "it keeps what it has";
  for (const char* container : {"c", "d", "e", "f"}) ASSERT_EQ(Run("ADD", container, config).status, 0);
  const std::string error = Run("ADD", "g", config).Error();
  EXPECT_EQ(
      error.rfind("105: no free address in 10.1.0.2 of subnet 10.1.0.0/30: size 1, in use 1, resting 0; "
                  "no free address in 10.2.0.1-10.2.0.5 of subnet 10.2.0.0/29",
                  0),
      0U)
      << error;
  ASSERT_EQ(Run("DEL", "a", config).status, 0);
  EXPECT_EQ(Run("STATUS", "", config).status, 1);
}

TEST_F(RangesTest, RangesOfOneSubnetAreOnePool) {
  const json config = Sets(R"([[{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.20", "rangeEnd": "10.1.0.21"},
                                {"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "rangeEnd": "10.1.0.11"}]])");
  EXPECT_EQ(Add("a", config), "10.1.0.10/24 via 10.1.0.1");
  EXPECT_EQ(Add("b", config), "10.1.0.11/24 via 10.1.0.1");
  EXPECT_EQ(Add("c", config), "10.1.0.20/24 via 10.1.0.1");
}

TEST_F(RangesTest, BesideASubnetAndFromTheRuntime) {
  json config = Sets(R"([[{"subnet": "fd00::/64"}]])");
  config["ipam"]["subnet"] = "10.1.0.0/24";
  config["ipam"]["rangeStart"] = "10.1.0.7";
  config["ipam"]["exclude"] = {"10.1.0.7", "fd00::2"};
  EXPECT_EQ(Add("a", config), "10.1.0.8/24, fd00::3/64 via fd00::1");
  config["runtimeConfig"]["ipRanges"] = json::parse(R"([[{"subnet": "10.9.0.0/24"}]])");
  EXPECT_EQ(Add("b", config), "10.9.0.2/24 via 10.9.0.1, 10.1.0.9/24, fd00::4/64 via fd00::1");
  config["runtimeConfig"]["ips"] = {"fd00::77", "10.9.0.99"};
  EXPECT_EQ(Add("c", config), "10.9.0.99/24 via 10.9.0.1, 10.1.0.10/24, fd00::77/64 via fd00::1");
}

TEST_F(RangesTest, SeveralRangesOfANode) {
  scratch_.Write("/etc/railhead/node-name", "alpha\n");
  scratch_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [
    {"name": "rail0", "pf": 0, "subnet": "10.100.0.0/24",
     "nodeRanges": {"alpha": ["10.100.0.60-10.100.0.61", "10.100.0.10"], "beta": "10.100.0.20-10.100.0.29"}}]})");
  const json config = Config({{"rail", "rail0"}});
  EXPECT_EQ(Add("a", config), "10.100.0.10/24");
  EXPECT_EQ(Add("b", config), "10.100.0.60/24");
  EXPECT_EQ(Add("c", config), "10.100.0.61/24");
  EXPECT_EQ(Run("ADD", "d", config).status, 1);
}

class BadRanges : public BadConfigTest {};

TEST_P(BadRanges, AreRefused) {
  ExpectRefused();
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadRanges,
    ::testing::Values(
        BadConfig{"NoList", R"({"ranges": {"subnet": "10.0.0.0/24"}})",
                  "/ipam/ranges: is not a list of lists of objects but object"},
        BadConfig{"OneListOnly", R"({"ranges": [{"subnet": "10.0.0.0/24"}]})",
                  "/ipam/ranges/0: is not a list of objects but object"},
        BadConfig{"NoObject", R"({"ranges": [["10.0.0.0/24"]]})",
                  "/ipam/ranges/0/0: is not an object but string"},
        BadConfig{"EmptySet", R"({"ranges": [[]]})", "/ipam/ranges: has an empty set"},
        BadConfig{"NoSubnet", R"({"ranges": [[{"rangeStart": "10.0.0.1"}]]})",
                  "/ipam/ranges/0/0/subnet: is missing"},
        BadConfig{"HostBits", R"({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "10.1.0.1/24"}]]})",
                  "/ipam/ranges/0/1/subnet: '10.1.0.1/24' has host bits set"},
        BadConfig{"Families", R"({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]]})",
                  "/ipam/ranges: mixes IPv4 and IPv6 in one set"},
        BadConfig{"Unknown", R"({"ranges": [[{"subnet": "10.0.0.0/24", "rangestart": "10.0.0.9"}]]})",
                  "/ipam/ranges/0/0/rangestart: unknown field; did you mean 'rangeStart'?"},
        BadConfig{"SubnetTwice", R"({"ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "10.0.0.0/24"}]]})",
                  "has an address of 10.0.0.0/24 already"},
        BadConfig{"TwoGateways",
                  R"({"ranges": [[{"subnet": "10.0.0.0/24", "gateway": "10.0.0.1", "rangeEnd": "10.0.0.9"},
                            {"subnet": "10.0.0.0/24", "gateway": "10.0.0.2", "rangeStart": "10.0.0.20"}]]})",
                  "/ipam/ranges/0/1: gateway 10.0.0.2 beside 10.0.0.1 of the same subnet"},
        BadConfig{"GatewayOfNone", R"({"gateway": "10.9.0.1", "ranges": [[{"subnet": "10.0.0.0/24"}]]})",
                  "/ipam/gateway: gateway 10.9.0.1 is not in subnet 10.0.0.0/24"},
        BadConfig{"RouteToNowhere",
                  R"({"ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "fd00::/64"}]],
                "routes": [{"dst": "10.0.0.0/8", "gw": "10.9.0.1"}]})",
                  "gw 10.9.0.1 is not in subnet 10.0.0.0/24 or fd00::/64"},
        BadConfig{"BesideRail", R"({"rail": "rail0", "ranges": [[{"subnet": "10.0.0.0/24"}]]})",
                  "/ipam/ranges: cannot be given together with 'rail'"},
        BadConfig{"BesideLinks",
                  R"({"links": [{"ifname": "a", "rail": "rail0"}], "ranges": [[{"subnet": "10.0.0.0/24"}]]})",
                  "/ipam/ranges: cannot be given together with 'links'"},
        BadConfig{"InALink", R"({"links": [{"ifname": "a", "ranges": [[{"subnet": "10.0.0.0/24"}]]}]})",
                  "/ipam/links/0/ranges: unknown field"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace railhead::testing
