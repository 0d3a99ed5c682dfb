// Gateways by their place in a network, and the routes that follow from the subnets of a fabric.
#include "cni/fabric/gateway.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/fabric/rail_routes.h"
#include "tests/support/seed.h"

namespace railhead::testing {
namespace {

std::string GatewayIn(const std::string& gateway, const std::string& network) {
  const auto address = Gateway::Parse(gateway)->In(*IpPrefix::Parse(network));
  return address ? address->ToString() : "none";
}

TEST(GatewayTest, IsAnAddressOrAPlaceInTheNetwork) {
  EXPECT_EQ(GatewayIn("first", "10.0.0.64/26"), "10.0.0.65");
  EXPECT_EQ(GatewayIn("last", "10.0.0.64/26"), "10.0.0.126");
  EXPECT_EQ(GatewayIn("other", "10.0.0.64/26"), "none");
  EXPECT_EQ(GatewayIn("first", "10.0.0.4/31"), "10.0.0.5");
  EXPECT_EQ(GatewayIn("last", "10.0.0.4/31"), "10.0.0.5");
  EXPECT_EQ(GatewayIn("other", "10.0.0.4/31"), "10.0.0.4");
  EXPECT_EQ(GatewayIn("first", "10.0.0.4/32"), "none");
  EXPECT_EQ(GatewayIn("last", "0.0.0.0/0"), "255.255.255.254");
  EXPECT_EQ(GatewayIn("first", "fd00:1::/64"), "fd00:1::1");
  EXPECT_EQ(GatewayIn("last", "fd00:1::/64"), "fd00:1::ffff:ffff:ffff:ffff");
  EXPECT_EQ(GatewayIn("last", "fd00:1::/126"), "fd00:1::3");
  EXPECT_EQ(GatewayIn("first", "fd00:1::/127"), "fd00:1::1");
  EXPECT_EQ(GatewayIn("other", "fd00:1::/127"), "fd00:1::");
  EXPECT_EQ(GatewayIn("other", "fd00:1::/64"), "none");
  EXPECT_EQ(GatewayIn("10.0.0.7", "10.0.0.0/29"), "10.0.0.7");
  EXPECT_EQ(GatewayIn("10.0.0.7", "10.0.0.8/29"), "none");
  EXPECT_EQ(Gateway::Parse("First"), std::nullopt);
  EXPECT_EQ(Gateway::Parse(""), std::nullopt);
  for (const char* text : {"first", "last", "other", "10.0.0.7", "fd00:1::1"})
    EXPECT_EQ(Gateway::Parse(text)->ToString(), text);
}

// A place is always a host's address of its network, and so of no other one.
TEST(GatewayTest, APlaceIsAHostOfTheNetwork) {
  for (const bool v6 : {false, true}) {
    const IpAddress base = *IpAddress::Parse(v6 ? "fd00:9:8:7:6:5:4:3" : "10.9.8.7");
    for (int length = 1; length < base.Bits(); ++length) {
      const IpPrefix network = IpPrefix{base, length}.Network();
      const bool two = length == base.Bits() - 1;
      for (const char* place : {"first", "last", "other"}) {
        const auto address = Gateway::Parse(place)->In(network);
        ASSERT_EQ(address.has_value(), two || std::string(place) != "other") << network.ToString();
        if (!address) continue;
        EXPECT_TRUE(network.Contains(*address));
        if (!two) EXPECT_NE(*address, network.First());
        if (!two && !v6) EXPECT_NE(*address, network.Last());
      }
    }
  }
}

constexpr int kLeast = 24;  // prefixes of 10.0.0.0/24, whose addresses can be counted

std::vector<bool> AddressesOf(const std::vector<IpPrefix>& prefixes) {
  std::vector<bool> has(256);
  for (const IpPrefix& prefix : prefixes) {
    for (std::size_t i = 0; i < has.size(); ++i)
      has[i] = has[i] || prefix.Contains(IpAddress::Parse("10.0.0.0")->Plus(i));
  }
  return has;
}

// How few prefixes can have them: all of a prefix, or the fewest of each of its halves.
std::size_t FewestOf(const std::vector<bool>& has, std::size_t first, std::size_t count) {
  const auto begin = has.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  if (std::find(begin, end, true) == end) return 0;
  if (std::find(begin, end, false) == end) return 1;
  return FewestOf(has, first, count / 2) + FewestOf(has, first + count / 2, count / 2);
}

TEST(RailRoutesTest, FewestPrefixesHaveTheSameAddresses) {
  std::mt19937_64 random(Seed());
  const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(random); };
  for (int round = 0; round < 300; ++round) {
    std::vector<IpPrefix> prefixes;
    for (int left = below(30); left > 0; --left) {
      const auto at = static_cast<std::uint64_t>(below(256));
      prefixes.push_back(IpPrefix{IpAddress::Parse("10.0.0.0")->Plus(at), kLeast + below(9)}.Network());
    }
    const auto has = AddressesOf(prefixes);
    const auto fewest = FewestPrefixes(prefixes);
    EXPECT_EQ(AddressesOf(fewest), has);
    EXPECT_EQ(fewest.size(), FewestOf(has, 0, 256));
    EXPECT_TRUE(std::ranges::is_sorted(fewest));
  }
}

std::string Texts(const std::vector<IpPrefix>& prefixes) {
  std::string text;
  for (const IpPrefix& prefix : prefixes) text += prefix.ToString() + " ";
  return text;
}

Fabric Read(const std::string& rails) {
  auto fabric = ParseFabric(R"({"version": 1, "rails": [)" + rails + "]}", "f");
  if (!fabric) ADD_FAILURE() << Describe(fabric.error());
  return fabric ? *std::move(fabric) : Fabric();
}

TEST(RailRoutesTest, FollowFromTheSubnetsOfTheFabric) {
  const auto routes = [](const std::string& fields) {
    const std::string other = R"(, {"name": "b", "pf": 1, "subnet": "10.1.0.0/16", "gateway": "last"})"
                              R"(, {"name": "c", "pf": 2, "subnet": "fd00::/64"})";
    return Texts(
        Read(R"({"name": "a", "pf": 0, "subnet": "10.0.0.0/16", )" + fields + "}" + other).rails[0].routes);
  };
  EXPECT_EQ(routes(R"("gateway": "last")"), "") << "the subnet is on the link";
  EXPECT_EQ(routes(R"("nodeSubnet": 31)"), "") << "there is no gateway";
  EXPECT_EQ(routes(R"("gateway": "other", "nodeSubnet": 31)"), "10.0.0.0/16 ");
  EXPECT_EQ(routes(R"("gateway": "first", "nodeSubnet": 16)"), "") << "there is one node";
  EXPECT_EQ(routes(R"("gateway": "first", "fabricSubnets": ["10.0.0.0/16", "10.2.0.0/16", "10.3.0.0/16"])"),
            "10.2.0.0/15 ")
      << "what is on the link needs no route";
  EXPECT_EQ(routes(R"("gateway": "first", "routes": "rails")"), "10.0.0.0/15 ") << "of its address family";
  EXPECT_EQ(routes(R"("gateway": "first", "nodeSubnet": 24, "routes": [])"), "") << "as it is written";
  EXPECT_EQ(routes(R"("gateway": "first", "nodeSubnet": 24, "routes": ["10.0.0.0/8"])"), "10.0.0.0/8 ");
}

std::string Probes(const std::string& fields) {
  const Fabric fabric = Read(R"({"name": "a", "pf": 0, "subnet": "10.0.0.0/24", )" + fields + "}");
  if (fabric.rails.empty()) return "";
  std::string text;
  for (const auto& [node, address] : fabric.rails[0].ProbeAddressesOf({{"n0", 0}, {"n1", 1}}))
    text += address.ToString() + " ";
  return text;
}

TEST(ProbePlaceTest, IsAnAddressOfEachNodesOwn) {
  EXPECT_EQ(Probes(R"("probeAddresses": "first", "nodeBlock": 26)"), "10.0.0.1 10.0.0.64 ");
  EXPECT_EQ(Probes(R"("probeAddresses": "last", "nodeBlock": 25)"), "10.0.0.127 10.0.0.254 ");
  EXPECT_EQ(Probes(R"("probeAddresses": "last", "nodeSubnet": 26)"), "10.0.0.62 10.0.0.126 ");
  EXPECT_EQ(Probes(R"("probeAddresses": "first", "nodeSubnet": 26, "gateway": "first")"),
            "10.0.0.2 10.0.0.66 ");
  EXPECT_EQ(Probes(R"("probeAddresses": "last", "nodeBlock": 26, "exclude": ["10.0.0.50-10.0.0.120"])"),
            "10.0.0.49 10.0.0.127 ");
  EXPECT_EQ(Probes(R"("probeAddresses": "last", "nodeSubnet": 31, "gateway": "other")"), "")
      << "the address is a pod's";
  EXPECT_EQ(Probes(R"("probeAddresses": "last", "nodeBlock": 26, "exclude": ["10.0.0.0/25"])"), "");
  EXPECT_EQ(Probes(R"("probeAddresses": "first", "nodeRanges": {"n0": ["10.0.0.9", "10.0.0.5-10.0.0.6"]})"),
            "10.0.0.5 ");
}

}  // namespace
}  // namespace railhead::testing
