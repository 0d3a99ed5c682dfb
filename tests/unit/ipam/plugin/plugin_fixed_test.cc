// railhead-ipam and addresses that are asked for by name.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

class FixedTest : public ::testing::Test {
 protected:
  FixedTest() {
    scratch_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [
      {"name": "rail0", "pf": 0, "subnet": "10.100.0.0/24", "gateway": "10.100.0.254",
       "exclude": ["10.100.0.15"], "nodeRanges": {"alpha": "10.100.0.10-10.100.0.20"}},
      {"name": "rail1", "pf": 1, "subnet": "10.101.0.0/24", "gateway": "10.101.0.254",
       "nodeRanges": {"alpha": "10.101.0.10-10.101.0.20"}}]})");
    scratch_.Write("/etc/railhead/node-name", "alpha\n");
  }
  static json Config(int rest_seconds = 600) {
    return {{"cniVersion", "1.1.0"},
            {"name", "net"},
            {"type", "railhead"},
            {"ipam", {{"type", "railhead-ipam"}, {"rail", "rail0"}, {"restSeconds", rest_seconds}}}};
  }
  static json Asking(const std::vector<std::string>& ips, json config = Config()) {
    config["runtimeConfig"]["ips"] = ips;
    return config;
  }
  static json Links(const std::vector<std::string>& ips) {
    json config = Config();
    config["ipam"].erase("rail");
    config["ipam"]["links"] = {{{"ifname", "r0"}, {"rail", "rail0"}}, {{"ifname", "r1"}, {"rail", "rail1"}}};
    return Asking(ips, config);
  }
  Answer Run(const std::string& command, const std::string& container, const json& config,
             const std::string& args = "") {
    return RunIpam(scratch_.path(),
                   {.command = command, .container = container, .config = config.dump(), .args = args});
  }
  std::string Refused(const json& config, const std::string& args = "") {
    return Run("ADD", "x", config, args).Error();
  }

  ScratchRoot scratch_;
};

TEST_F(FixedTest, ByCapabilityConfigurationAndEnvironmentInThisOrder) {
  const std::string args = "IgnoreUnknown=1;IP=10.100.0.12/24;GATEWAY=10.100.0.1";
  EXPECT_EQ(Run("ADD", "a", Config(), args).Address(), "10.100.0.12/24");
  json in_config = Config();
  in_config["args"] = {{"cni", {{"ips", {"10.100.0.13"}}, {"mac", "02:00:00:00:00:01"}}}, {"other", 1}};
  EXPECT_EQ(Run("ADD", "b", in_config, args).Address(), "10.100.0.13/24");
  EXPECT_EQ(Run("ADD", "c", Asking({"10.100.0.14/24"}, in_config), args).Address(), "10.100.0.14/24");
  EXPECT_EQ(Run("ADD", "d", Asking({}, Config()), "IP=").Address(), "10.100.0.10/24")
      << "an empty list asks for nothing; what is asked for does not move the order on";
}

TEST_F(FixedTest, OrderGoesAroundIt) {
  ASSERT_EQ(Run("ADD", "a", Asking({"10.100.0.11"})).status, 0);
  EXPECT_EQ(Run("ADD", "b", Config()).Address(), "10.100.0.10/24");
  EXPECT_EQ(Run("ADD", "c", Config()).Address(), "10.100.0.12/24");
}

TEST_F(FixedTest, EachToTheLinkWhoseSubnetHasIt) {
  EXPECT_EQ(Run("ADD", "a", Links({"10.101.0.17/24", "10.100.0.16"})).Addresses(),
            "0 10.100.0.16/24 via 10.100.0.254, 1 10.101.0.17/24 via 10.101.0.254");
  EXPECT_EQ(Run("ADD", "b", Links({"10.101.0.18"})).Addresses(),
            "0 10.100.0.10/24 via 10.100.0.254, 1 10.101.0.18/24 via 10.101.0.254");
  EXPECT_EQ(Run("ADD", "c", Links({}), "IP=10.100.0.19,10.101.0.19/24").Addresses(),
            "0 10.100.0.19/24 via 10.100.0.254, 1 10.101.0.19/24 via 10.101.0.254");
}

TEST_F(FixedTest, TheSameAgainAndCheck) {
  const json config = Asking({"10.100.0.12"});
  ASSERT_EQ(Run("ADD", "a", config).Address(), "10.100.0.12/24");
  EXPECT_EQ(Run("ADD", "a", config).Address(), "10.100.0.12/24");
  EXPECT_EQ(Run("CHECK", "a", config).status, 0);
  EXPECT_EQ(Run("CHECK", "a", Asking({"10.100.0.13"})).Error().substr(0, 66),
            "101: 10.100.0.13 of 10.100.0.0/24 is not held by container a, inte");
  EXPECT_EQ(Run("ADD", "a", Asking({"10.100.0.13"})).Address(), "10.100.0.13/24") << "in place of the other";
  EXPECT_NE(Refused(config).find("address 10.100.0.12 of 10.100.0.0/24 rests for another "),
            std::string::npos);
}

TEST_F(FixedTest, HeldByAnother) {
  ASSERT_EQ(Run("ADD", "first", Asking({"10.100.0.12"})).status, 0);
  const std::string error = Refused(Links({"10.100.0.12"}));
  EXPECT_EQ(error.rfind("11: r0: address 10.100.0.12 of 10.100.0.0/24 is held by container first, interface "
                        "net1, network net since 20",
                        0),
            0U)
      << error;
  EXPECT_EQ(Run("ADD", "y", Links({})).Addresses(),
            "0 10.100.0.10/24 via 10.100.0.254, 1 10.101.0.10/24 via 10.101.0.254")
      << "nothing of the refused one was used up";
}

TEST_F(FixedTest, RestingUntilItsRestIsOver) {
  ASSERT_EQ(Run("ADD", "a", Asking({"10.100.0.12"})).status, 0);
  ASSERT_EQ(Run("DEL", "a", Config()).status, 0);
  const std::string error = Refused(Asking({"10.100.0.12"}));
  EXPECT_EQ(error.rfind("11: address 10.100.0.12 of 10.100.0.0/24 rests for another ", 0), 0U) << error;
  EXPECT_NE(error.find(" by container a, interface net1, network net; try again then"), std::string::npos)
      << error;
  EXPECT_EQ(Run("ADD", "b", Asking({"10.100.0.12"}, Config(0))).Address(), "10.100.0.12/24");
}

// STATUS is about the network, whoever has the address that its configuration asks for.
TEST_F(FixedTest, StatusWhileItIsHeld) {
  json config = Config();
  config["args"] = {{"cni", {{"ips", {"10.100.0.12"}}}}};
  ASSERT_EQ(Run("ADD", "a", config).status, 0);
  EXPECT_EQ(Run("STATUS", "", config).status, 0) << Run("STATUS", "", config).out;
}

TEST_F(FixedTest, WhatCannotBeGiven) {
  for (const char* address : {"10.100.0.0", "10.100.0.254", "10.100.0.15", "10.100.0.21", "10.100.0.255"}) {
    const std::string error = Refused(Asking({address}));
    EXPECT_EQ(error, "7: requested address " + std::string(address) +
                         " is in subnet 10.100.0.0/24, but not one that may be given: gateway, excluded, or "
                         "of another node; this node gives 10.100.0.10-10.100.0.14, 10.100.0.16-10.100.0.20");
  }
  EXPECT_EQ(Refused(Asking({"10.101.0.12"})),
            "7: requested address 10.101.0.12 is in none of the subnets of this attachment; it has: "
            "10.100.0.0/24");
  EXPECT_EQ(Refused(Asking({"10.100.0.12/16"})),
            "7: requested address 10.100.0.12/16 is of another prefix length than its subnet 10.100.0.0/24; "
            "write 10.100.0.12");
  EXPECT_EQ(Refused(Asking({"10.100.0.12", "10.100.0.13"})),
            "7: requested address 10.100.0.13: 10.100.0.12 is asked for in its place already; ask for as "
            "many addresses of a subnet as the attachment has links in it");
}

TEST_F(FixedTest, WhatIsNoAddress) {
  EXPECT_EQ(Refused(Asking({"10.100.0.12", "x"})),
            "7: network configuration: /runtimeConfig/ips: 'x' is not an IP address; write ADDRESS or "
            "ADDRESS/LENGTH");
  EXPECT_EQ(Refused(Config(), "IP=10.100.0.12,").substr(0, 55),
            "7: network configuration: /CNI_ARGS IP: '' is not an IP");
  json config = Config();
  config["args"] = {{"cni", {{"ips", "10.100.0.12"}}}};
  EXPECT_EQ(Refused(config), "7: network configuration: /args/cni/ips: is not a list of strings but string");
}

}  // namespace
}  // namespace railhead::testing
