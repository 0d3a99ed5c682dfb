// Which address railhead-ipam gives.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ipam/store/store.h"
#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

// Addresses that a request to railhead-ipam names.

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
  static json Config(int reuse_delay_seconds = 600) {
    return {
        {"cniVersion", "1.1.0"},
        {"name", "net"},
        {"type", "railhead"},
        {"ipam", {{"type", "railhead-ipam"}, {"rail", "rail0"}, {"reuseDelaySeconds", reuse_delay_seconds}}}};
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
  EXPECT_NE(Refused(config).find("address 10.100.0.12 of 10.100.0.0/24 is in its reuse delay for another "),
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

TEST_F(FixedTest, CoolingDownUntilTheReuseDelayIsOver) {
  ASSERT_EQ(Run("ADD", "a", Asking({"10.100.0.12"})).status, 0);
  ASSERT_EQ(Run("DEL", "a", Config()).status, 0);
  const std::string error = Refused(Asking({"10.100.0.12"}));
  EXPECT_EQ(error.rfind("11: address 10.100.0.12 of 10.100.0.0/24 is in its reuse delay for another ", 0), 0U)
      << error;
  EXPECT_NE(error.find(" by container a, interface net1, network net; try again then"), std::string::npos)
      << error;
  EXPECT_EQ(Run("ADD", "b", Asking({"10.100.0.12"}, Config(0))).Address(), "10.100.0.12/24");
}

// STATUS concerns the network. It succeeds even if another owner has the address that the configuration
// requests.
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

// railhead-ipam where the fabric computes addresses from the VF's index.

class DeterministicTest : public ::testing::Test {
 protected:
  DeterministicTest() { WriteFabric(""); }
  void WriteFabric(const std::string& more) {
    scratch_.Write("/etc/railhead/node-name", "beta\n");
    scratch_.Write("/etc/railhead/fabric.json",
                   R"({"version": 1, "nodes": {"alpha": 0, "beta": 2},
      "addresses": {"policy": "deterministic")" +
                       more + R"(}, "rails": [
      {"name": "rail0", "pf": 0, "subnet": "10.100.0.0/24", "gateway": "10.100.0.33", "nodeBlock": 28},
      {"name": "rail1", "pf": 1, "subnet": "fd00::/64", "nodeBlock": 120}]})");
  }
  static json Config(const json& ipam) {
    json config{{"cniVersion", "1.1.0"}, {"name", "net"}, {"type", "railhead"}, {"ipam", ipam}};
    config["ipam"]["type"] = "railhead-ipam";
    return config;
  }
  static json Vf(int index) { return Config({{"rail", "rail0"}, {"vf", index}}); }
  Answer Run(const std::string& command, const std::string& container, const json& config) {
    return RunIpam(scratch_.path(), {command, container, config.dump()});
  }

  ScratchRoot scratch_;
};

TEST_F(DeterministicTest, TheAddressWithTheIndexOfTheVf) {
  // The node's block begins with .32; .33 is the gateway.
  EXPECT_EQ(Run("ADD", "a", Vf(0)).Address(), "10.100.0.32/24");
  EXPECT_EQ(Run("ADD", "b", Vf(7)).Address(), "10.100.0.40/24");
  EXPECT_EQ(Run("ADD", "b", Vf(7)).Address(), "10.100.0.40/24");
  EXPECT_EQ(Run("CHECK", "b", Vf(7)).status, 0);
  EXPECT_EQ(Run("CHECK", "b", Vf(8)).status, 1);
  ASSERT_EQ(Run("DEL", "b", Vf(7)).status, 0);
  EXPECT_EQ(Run("ADD", "c", Vf(7)).Address(), "10.100.0.40/24") << "it comes back to the same VF at once";
  EXPECT_EQ(Run("ADD", "d",
                Config({{"links",
                         {{{"ifname", "r1"}, {"rail", "rail1"}, {"vf", 3}},
                          {{"ifname", "r0"}, {"rail", "rail0"}, {"vf", 9}}}}}))
                .Addresses(),
            "0 fd00::203/64, 1 10.100.0.42/24 via 10.100.0.33");
}

TEST_F(DeterministicTest, HeldByAnotherOrCoolingDown) {
  ASSERT_EQ(Run("ADD", "a", Vf(4)).status, 0);
  std::string error = Run("ADD", "b", Vf(4)).Error();
  EXPECT_EQ(error.rfind("11: address 10.100.0.37 of 10.100.0.0/24 is held by container a,", 0), 0U) << error;
  WriteFabric(R"(, "reuseDelaySeconds": 600)");
  ASSERT_EQ(Run("DEL", "a", Vf(4)).status, 0);
  error = Run("ADD", "b", Vf(4)).Error();
  EXPECT_EQ(error.rfind("11: address 10.100.0.37 of 10.100.0.0/24 is in its reuse delay for another ", 0), 0U)
      << error;
}

TEST_F(DeterministicTest, WithoutAnIndexAndBeyondTheRange) {
  EXPECT_EQ(Run("ADD", "a", Config({{"rail", "rail0"}})).Error(),
            "7: network configuration: /ipam: the fabric's policy 'deterministic' needs the index of the VF "
            "('vf'), which is missing; below railhead each VF has one; a PF has none: put it on a rail of "
            "another fabric file");
  EXPECT_EQ(Run("ADD", "a", Vf(15)).Error(),
            "7: /etc/railhead/fabric.json: rail 'rail0': VF 15 has no address: this node has 15, "
            "10.100.0.32, 10.100.0.34-10.100.0.47; give the node a range with an address for every VF");
  EXPECT_EQ(
      Run("ADD", "a", Vf(-1)).Error().rfind("7: network configuration: /ipam/vf: -1 is out of range", 0), 0U);
  EXPECT_EQ(Run("STATUS", "", Config({{"rail", "rail0"}})).status, 0)
      << "which VF it will be, nobody knows yet";
}

TEST_F(DeterministicTest, AFixedAddressIsThatOneOrNone) {
  json config = Vf(4);
  config["runtimeConfig"]["ips"] = {"10.100.0.37"};
  EXPECT_EQ(Run("ADD", "a", config).Address(), "10.100.0.37/24");
  config["runtimeConfig"]["ips"] = {"10.100.0.38"};
  EXPECT_EQ(Run("ADD", "b", config).Error(),
            "7: requested address 10.100.0.38: by the fabric's policy 'deterministic' this VF's is "
            "10.100.0.37; ask for that one or for none");
}

TEST_F(DeterministicTest, TheIndexCountsForThisPolicyOnly) {
  scratch_.Write("/etc/railhead/fabric.json",
                 R"({"version": 1, "rails": [{"name": "rail0", "pf": 0, "subnet": "10.100.0.0/24",
                     "nodeRanges": {"beta": "10.100.0.10-10.100.0.20"}}]})");
  EXPECT_EQ(Run("ADD", "a", Vf(4)).Address(), "10.100.0.10/24");
}

// railhead-ipam: early reuse, and the first call of a boot.

class ReuseDelayTest : public ::testing::Test {
 protected:
  static json Config(const json& ipam) {
    json config{{"cniVersion", "1.1.0"}, {"name", "net"}, {"type", "railhead"}, {"ipam", ipam}};
    config["ipam"]["type"] = "railhead-ipam";
    return config;
  }
  // One address.
  static json One(int min_reuse_delay_seconds) {
    return Config({{"subnet", "10.0.0.0/24"},
                   {"rangeStart", "10.0.0.7"},
                   {"rangeEnd", "10.0.0.7"},
                   {"minReuseDelaySeconds", min_reuse_delay_seconds}});
  }
  Answer Run(const std::string& command, const std::string& container, const json& config) {
    return RunIpam(scratch_.path(), {command, container, config.dump()});
  }
  void Boot(const std::string& id) { scratch_.Write("/proc/sys/kernel/random/boot_id", id + "\n"); }

  ScratchRoot scratch_;
};

TEST_F(ReuseDelayTest, IsCutShortWhereTheConfigurationAllows) {
  ASSERT_EQ(Run("ADD", "a", One(0)).Address(), "10.0.0.7/24");
  ASSERT_EQ(Run("DEL", "a", One(0)).status, 0);
  const std::string error = Run("ADD", "b", One(500)).Error();
  EXPECT_EQ(
      error.rfind(
          "105: no free address in 10.0.0.7 of subnet 10.0.0.0/24: size 1, in use 0, cooling down 1; the "
          "next address is free again in ",
          0),
      0U)
      << error;
  EXPECT_EQ(Run("STATUS", "", One(500)).status, 0) << "an exhausted pool";
  EXPECT_EQ(Run("ADD", "b", One(0)).Address(), "10.0.0.7/24");
  const auto store = ipam::AddressStore::Open(scratch_.root());
  const auto counters = store->Counters().value().at("10.0.0.0/24");
  EXPECT_EQ(counters, (ipam::PoolCounters{.allocated = 2, .released = 1, .early_reuses = 1, .exhausted = 1}));
}

TEST_F(ReuseDelayTest, TheFabricSaysHowShort) {
  scratch_.Write("/etc/railhead/node-name", "alpha\n");
  const auto write = [&](const std::string& addresses) {
    scratch_.Write("/etc/railhead/fabric.json",
                   R"({"version": 1, "addresses": )" + addresses + R"(, "rails": [{"name": "rail0", "pf": 0,
                      "subnet": "10.0.0.0/24", "nodeRanges": {"alpha": "10.0.0.7"}}]})");
  };
  const json config = Config({{"rail", "rail0"}});
  write("{}");
  ASSERT_EQ(Run("ADD", "a", config).status, 0);
  ASSERT_EQ(Run("DEL", "a", config).status, 0);
  EXPECT_EQ(Run("ADD", "b", config).status, 1) << "the default is a minute";
  write(R"({"minReuseDelaySeconds": 0})");
  EXPECT_EQ(Run("ADD", "b", config).Address(), "10.0.0.7/24");
}

TEST_F(ReuseDelayTest, TheFirstCallOfABootReleasesWhatEarlierOnesHeld) {
  Boot("one");
  const json config = Config({{"subnet", "10.0.0.0/24"}});
  for (const char* container : {"a", "b"}) ASSERT_EQ(Run("ADD", container, config).status, 0);
  Boot("two");
  EXPECT_EQ(Run("ADD", "c", config).Address(), "10.0.0.3/24");
  EXPECT_EQ(Run("CHECK", "a", config).Error().substr(0, 4), "101:");
  EXPECT_EQ(Run("ADD", "b", config).Address(), "10.0.0.2/24") << "started again by its id";
  Boot("three");
  EXPECT_EQ(Run("DEL", "c", config).status, 0);
  const auto records = ipam::AddressStore::Open(scratch_.root())->List().value();
  ASSERT_EQ(records.size(), 3U);
  for (const ipam::AddressRecord& record : records) EXPECT_EQ(record.state, ipam::AddressState::kCoolingDown);
}

}  // namespace
}  // namespace railhead::testing
