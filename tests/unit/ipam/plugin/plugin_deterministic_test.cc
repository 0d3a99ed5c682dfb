// railhead-ipam where the fabric computes addresses from the VF's index.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

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

TEST_F(DeterministicTest, HeldByAnotherOrResting) {
  ASSERT_EQ(Run("ADD", "a", Vf(4)).status, 0);
  std::string error = Run("ADD", "b", Vf(4)).Error();
  EXPECT_EQ(error.rfind("11: address 10.100.0.37 of 10.100.0.0/24 is held by container a,", 0), 0U) << error;
  WriteFabric(R"(, "restSeconds": 600)");
  ASSERT_EQ(Run("DEL", "a", Vf(4)).status, 0);
  error = Run("ADD", "b", Vf(4)).Error();
  EXPECT_EQ(error.rfind("11: address 10.100.0.37 of 10.100.0.0/24 rests for another ", 0), 0U) << error;
}

TEST_F(DeterministicTest, WithoutAnIndexAndBeyondTheRange) {
  EXPECT_EQ(Run("ADD", "a", Config({{"rail", "rail0"}})).Error(),
            "7: network configuration: /ipam: the fabric's policy 'deterministic' needs the index of the VF "
            "('vf'), and there is none; below railhead each VF has one; a PF has none: put it on a rail of "
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

}  // namespace
}  // namespace railhead::testing
