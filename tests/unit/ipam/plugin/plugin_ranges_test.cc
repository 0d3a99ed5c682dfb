// railhead-ipam that gives several addresses, or of several ranges.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "ipam/store/held_addresses.h"
#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"
#include "tests/unit/ipam/plugin/bad_config.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

// railhead-ipam with several ranges: of one address, and of several.

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

// The same as in host-local.
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
      error.rfind("105: no free address in 10.1.0.2 of subnet 10.1.0.0/30: size 1, in use 1, cooling down 0; "
                  "no free address in 10.2.0.1-10.2.0.5 of subnet 10.2.0.0/29",
                  0),
      0U)
      << error;
  ASSERT_EQ(Run("DEL", "a", config).status, 0);
  json newer = config;
  newer["cniVersion"] = "1.1.0";
  EXPECT_EQ(Run("STATUS", "", newer).status, 0) << "an exhausted pool";
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
        BadConfig{"EmptySet", R"({"ranges": [[]]})", "/ipam/ranges/0: is an empty set"},
        BadConfig{"NoSubnet", R"({"ranges": [[{"rangeStart": "10.0.0.1"}]]})",
                  "/ipam/ranges/0/0/subnet: is required"},
        BadConfig{"HostBits", R"({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "10.1.0.1/24"}]]})",
                  "/ipam/ranges/0/1/subnet: '10.1.0.1/24' has host bits set"},
        BadConfig{"Families", R"({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]]})",
                  "/ipam/ranges/0: mixes IPv4 and IPv6 in one set"},
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

// railhead-ipam with `links`: the addresses of all interfaces of an attachment in one call.

// Eight rails of 10.100.N.10 to .13; the last has three addresses less.
json Fabric() {
  json fabric{{"version", 1}, {"rails", json::array()}};
  for (int i = 0; i < 8; ++i) {
    const std::string net = "10." + std::to_string(100 + i) + ".0.";
    std::string range = net;
    range.append(i == 7 ? "13-" : "10-").append(net).append("13");
    fabric["rails"].push_back({{"name", "rail" + std::to_string(i)},
                               {"pf", i},
                               {"subnet", net + "0/24"},
                               {"gateway", net + "254"},
                               {"routes", {"10.0.0.0/8"}},
                               {"nodeRanges", {{"alpha", range}}}});
  }
  return fabric;
}

json Rail(int i) {
  return {{"ifname", "r" + std::to_string(i)}, {"rail", "rail" + std::to_string(i)}};
}

json Config(const json& links, const std::string& version = "1.1.0") {
  return {{"cniVersion", version},
          {"name", "net"},
          {"type", "railhead"},
          {"ipam", {{"type", "railhead-ipam"}, {"links", links}}}};
}

class LinksTest : public ::testing::Test {
 protected:
  LinksTest() {
    scratch_.Write("/etc/railhead/fabric.json", Fabric().dump());
    scratch_.Write("/etc/railhead/node-name", "alpha\n");
  }
  Answer Run(const std::string& command, const std::string& container, const json& config,
             const std::string& ifname = "eth0") {
    return RunIpam(scratch_.path(), {command, container, config.dump(), ifname});
  }
  std::size_t HeldCount() {
    const auto held = ipam::ListHeld(scratch_.root());
    EXPECT_TRUE(held) << Describe(held.error());
    return held ? held->records.size() : 0;
  }

  ScratchRoot scratch_;
  const json two_ = Config({Rail(1), Rail(0)});
};

TEST_F(LinksTest, OneOfEachRailInTheirOrder) {
  const Answer added = Run("ADD", "a", two_);
  EXPECT_EQ(added.Addresses(), "0 10.101.0.10/24 via 10.101.0.254, 1 10.100.0.10/24 via 10.100.0.254");
  EXPECT_FALSE(added.Json().contains("routes")) << "the fabric's routes are railhead's business";
  EXPECT_FALSE(added.Json().contains("interfaces"));
  EXPECT_EQ(Run("ADD", "b", two_).Addresses(),
            "0 10.101.0.11/24 via 10.101.0.254, 1 10.100.0.11/24 via 10.100.0.254");
}

TEST_F(LinksTest, TheSameAgainWhateverTheOrder) {
  ASSERT_EQ(Run("ADD", "a", two_).status, 0);
  EXPECT_EQ(Run("ADD", "a", Config({Rail(0), Rail(1), Rail(2)})).Addresses(),
            "0 10.100.0.10/24 via 10.100.0.254, 1 10.101.0.10/24 via 10.101.0.254, 2 10.102.0.10/24 via "
            "10.102.0.254");
  EXPECT_EQ(HeldCount(), 3U);
  // The plain form is the attachment itself, not one of its links.
  json plain = two_;
  plain["ipam"] = {{"type", "railhead-ipam"}, {"rail", "rail0"}};
  EXPECT_EQ(Run("ADD", "a", plain).Address(), "10.100.0.11/24");
}

TEST_F(LinksTest, InlineFieldsRoutesAndWhatHoldsForAll) {
  json config =
      Config({{{"ifname", "a"},
               {"subnet", "10.9.0.0/24"},
               {"rangeStart", "10.9.0.5"},
               {"gateway", "10.9.0.1"},
               {"routes", {{{"dst", "10.0.0.0/8"}, {"gw", "10.9.0.1"}, {"table", 109}}}}},
              {{"ifname", "b"}, {"rail", "rail3"}, {"gateway", "10.103.0.253"}, {"routes", json::array()}},
              {{"ifname", "c"}, {"subnet", "fd00::/64"}, {"reuseDelaySeconds", 0}}});
  config["ipam"]["exclude"] = {"10.9.0.5-10.9.0.7", "10.103.0.10", "fd00::1"};
  config["ipam"]["reuseDelaySeconds"] = 1000;
  const Answer added = Run("ADD", "x", config);
  EXPECT_EQ(added.Addresses(),
            "0 10.9.0.11/24 via 10.9.0.1, 1 10.103.0.11/24 via 10.103.0.253, 2 fd00::2/64");
  EXPECT_EQ(added.Json()["routes"],
            json::array({{{"dst", "10.0.0.0/8"}, {"gw", "10.9.0.1"}, {"table", 109}}}));
}

TEST_F(LinksTest, OlderVersionsToo) {
  const Answer added = Run("ADD", "a", Config({Rail(0), Rail(1)}, "0.4.0"));
  ASSERT_EQ(added.status, 0) << added.out;
  EXPECT_EQ(
      added.Json()["ips"][1],
      (json{{"version", "4"}, {"interface", 1}, {"address", "10.101.0.10/24"}, {"gateway", "10.101.0.254"}}));
}

TEST_F(LinksTest, TwoLinksOfOneRailAndTwoSubnetsOfOneLink) {
  EXPECT_EQ(Run("ADD", "a", Config({Rail(0), {{"ifname", "second"}, {"rail", "rail0"}}})).Addresses(),
            "0 10.100.0.10/24 via 10.100.0.254, 1 10.100.0.11/24 via 10.100.0.254");
  EXPECT_EQ(Run("ADD", "b", Config({Rail(0), {{"ifname", "r0"}, {"subnet", "fd00::/64"}}})).Addresses(),
            "0 10.100.0.12/24 via 10.100.0.254, 1 fd00::1/64");
}

TEST_F(LinksTest, NothingIsHeldWhenTheLastPoolIsExhausted) {
  json all = json::array();
  for (int i = 0; i < 8; ++i) all.push_back(Rail(i));
  const json eight = Config(all);
  ASSERT_EQ(Run("ADD", "a", eight).status, 0);
  ASSERT_EQ(HeldCount(), 8U);
  const std::string error = Run("ADD", "b", eight).Error();
  EXPECT_EQ(error.rfind("105: r7: no free address in 10.107.0.13 ", 0), 0U) << error;
  EXPECT_EQ(HeldCount(), 8U);
  // And nothing was used up: the next address is the one after a's, which was .13 on all rails.
  EXPECT_EQ(Run("ADD", "c", Config(json::array({Rail(0)}))).Addresses(), "0 10.100.0.10/24 via 10.100.0.254");
}

TEST_F(LinksTest, DelReleasesAllOfTheAttachmentWhateverTheConfiguration) {
  for (const char* ifname : {"eth1", "eth10"}) ASSERT_EQ(Run("ADD", "a", two_, ifname).status, 0);
  ASSERT_EQ(Run("ADD", "a", Config(json::array({Rail(4)})), "eth1").status, 0);
  ASSERT_EQ(HeldCount(), 5U);
  json other = two_;
  other["ipam"] = {{"type", "railhead-ipam"}};
  scratch_.Write("/etc/railhead/fabric.json", "{");
  EXPECT_EQ(Run("DEL", "a", other, "eth1").status, 0);
  const auto held = ipam::ListHeld(scratch_.root());
  ASSERT_EQ(held->records.size(), 2U);
  for (const ipam::AddressRecord& record : held->records) EXPECT_EQ(AttachmentIfname(record.owner), "eth10");
  EXPECT_EQ(Run("DEL", "a", other, "eth1").status, 0);
  EXPECT_EQ(HeldCount(), 2U);
}

TEST_F(LinksTest, CheckWantsEveryLink) {
  EXPECT_EQ(Run("CHECK", "a", two_).Error().substr(0, 4), "101:");
  json config = two_;
  config["prevResult"] = Run("ADD", "a", two_).Json();
  EXPECT_EQ(Run("CHECK", "a", config).status, 0) << Run("CHECK", "a", config).out;
  json more = config;
  more["ipam"]["links"].push_back(Rail(2));
  EXPECT_EQ(
      Run("CHECK", "a", more)
          .Error()
          .rfind("101: no address of 10.102.0.0/24 is held by container a, interface eth0/r2, network net",
                 0),
      0U)
      << Run("CHECK", "a", more).Error();
  config["prevResult"]["ips"].erase(1);
  EXPECT_EQ(Run("CHECK", "a", config).Error().rfind("106: 10.100.0.10 is held by container a", 0), 0U)
      << Run("CHECK", "a", config).Error();
}

TEST_F(LinksTest, ManyAtOnce) {
  json links = json::array();
  for (int i = 0; i < 8; ++i) {
    links.push_back({{"ifname", "r" + std::to_string(i)}, {"subnet", "10.0." + std::to_string(i) + ".0/24"}});
  }
  std::vector<Call> calls;
  calls.reserve(24);
  for (int i = 0; i < 24; ++i) calls.push_back({"ADD", "c" + std::to_string(i), Config(links).dump()});
  std::set<std::string> addresses;
  for (const Answer& answer : RunIpamAtOnce(scratch_.path(), calls)) {
    ASSERT_EQ(answer.status, 0) << answer.out << answer.err;
    const json given = answer.Json();
    for (const auto& ip : given["ips"]) addresses.insert(ip["address"].get<std::string>());
  }
  EXPECT_EQ(addresses.size(), 24U * 8U);
}

// The rails of a pod read alike, whatever single rails were used in between.
TEST_F(LinksTest, TheSameHostPartOnEveryRail) {
  ASSERT_EQ(Run("ADD", "a", Config(json::array({Rail(1)}))).status, 0);
  ASSERT_EQ(Run("ADD", "b", Config(json::array({Rail(1)}))).status, 0);
  EXPECT_EQ(Run("ADD", "c", two_).Addresses(),
            "0 10.101.0.12/24 via 10.101.0.254, 1 10.100.0.12/24 via 10.100.0.254");
  const json four = Config(
      {Rail(2), Rail(3), {{"ifname", "r2-1"}, {"rail", "rail2"}}, {{"ifname", "r3-1"}, {"rail", "rail3"}}});
  EXPECT_EQ(Run("ADD", "d", four).Addresses(),
            "0 10.102.0.10/24 via 10.102.0.254, 1 10.103.0.10/24 via 10.103.0.254, "
            "2 10.102.0.11/24 via 10.102.0.254, 3 10.103.0.11/24 via 10.103.0.254");
  // An address that is asked for is not given to another link of the same pod.
  json asked = four;
  asked["runtimeConfig"]["ips"] = {"10.102.0.12"};
  asked["ipam"]["links"][0]["ifname"] = "other";
  EXPECT_EQ(Run("ADD", "e", asked).Addresses(),
            "0 10.102.0.12/24 via 10.102.0.254, 1 10.103.0.13/24 via 10.103.0.254, "
            "2 10.102.0.13/24 via 10.102.0.254, 3 10.103.0.12/24 via 10.103.0.254");
}

class BadLinks : public BadConfigTest {};

TEST_P(BadLinks, AreRefused) {
  ExpectRefused();
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadLinks,
    ::testing::Values(
        BadConfig{"Empty", R"({"links": []})", "/ipam/links: must not be empty"},
        BadConfig{"NoList", R"({"links": {"ifname": "a"}})",
                  "/ipam/links: is not a list of objects but object"},
        BadConfig{"NoObject", R"({"links": ["rail0"]})", "/ipam/links/0: is not an object but string"},
        BadConfig{"BesideRail", R"({"rail": "rail0", "links": [{"ifname": "a", "subnet": "10.0.0.0/24"}]})",
                  "/ipam/rail: cannot be given together with 'links'"},
        BadConfig{"BesideSubnet", R"({"subnet": "10.0.0.0/24", "links": [{"ifname": "a", "rail": "rail0"}]})",
                  "/ipam/subnet: cannot be given together with 'links'"},
        BadConfig{"BesideGateway",
                  R"({"gateway": "10.0.0.1", "links": [{"ifname": "a", "subnet": "10.0.0.0/24"}]})",
                  "/ipam/gateway: cannot be given together with 'links'; say it for each of the links"},
        BadConfig{"NoName", R"({"links": [{"subnet": "10.0.0.0/24"}]})", "/ipam/links/0/ifname: is required"},
        BadConfig{"NameWithSlash", R"({"links": [{"ifname": "a/b", "subnet": "10.0.0.0/24"}]})",
                  "/ipam/links/0/ifname: is not an interface name"},
        BadConfig{"NameTooLong", R"({"links": [{"ifname": "sixteen_letters_", "subnet": "10.0.0.0/24"}]})",
                  "/ipam/links/0/ifname: is not an interface name"},
        BadConfig{"NeitherRailNorSubnet", R"({"links": [{"ifname": "a"}]})",
                  "/ipam/links/0: has neither 'rail' nor 'subnet'"},
        BadConfig{"RailAndSubnet",
                  R"({"links": [{"ifname": "a", "rail": "rail0", "subnet": "10.0.0.0/24"}]})",
                  "/ipam/links/0/subnet: cannot be given together with 'rail'"},
        BadConfig{"Misspelt", R"({"links": [{"ifname": "a", "subnte": "10.0.0.0/24"}]})",
                  "/ipam/links/0/subnte: unknown field; did you mean 'subnet'?"},
        BadConfig{"TypeInside", R"({"links": [{"ifname": "a", "type": "x", "subnet": "10.0.0.0/24"}]})",
                  "/ipam/links/0/type: unknown field"},
        BadConfig{
            "Twice",
            R"({"links": [{"ifname": "a", "subnet": "10.0.0.0/24"}, {"ifname": "a", "subnet": "10.0.0.0/24"}]})",
            "/ipam/links/1: 'a' has an address of 10.0.0.0/24 already"},
        BadConfig{"RangeReversed",
                  R"({"links": [{"ifname": "a", "subnet": "10.0.0.0/24"},
                          {"ifname": "b", "subnet": "10.0.1.0/24", "rangeStart": "10.0.1.9", "rangeEnd": "10.0.1.5"}]})",
                  "/ipam/links/1: rangeStart 10.0.1.9 is not before"},
        BadConfig{"NoFabric", R"({"links": [{"ifname": "a", "rail": "rail0"}]})",
                  "/ipam/links/0/rail: 'rail0' needs the fabric file"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST_F(LinksTest, ARailThatIsNone) {
  EXPECT_EQ(
      Run("ADD", "a", Config({Rail(0), {{"ifname", "b"}, {"rail", "rial1"}}})).Error(),
      "7: network configuration: /ipam/links/1/rail: /etc/railhead/fabric.json has no rail 'rial1'; did you "
      "mean 'rail1'?");
  EXPECT_FALSE(std::filesystem::exists(scratch_.StorePath()));
}

}  // namespace
}  // namespace railhead::testing
