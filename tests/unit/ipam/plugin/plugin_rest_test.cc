// railhead-ipam: rests that are cut short, and the first call of a boot.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "ipam/store/store.h"
#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

class RestTest : public ::testing::Test {
 protected:
  static json Config(const json& ipam) {
    json config{{"cniVersion", "1.1.0"}, {"name", "net"}, {"type", "railhead"}, {"ipam", ipam}};
    config["ipam"]["type"] = "railhead-ipam";
    return config;
  }
  // One address.
  static json One(int min_rest_seconds) {
    return Config({{"subnet", "10.0.0.0/24"},
                   {"rangeStart", "10.0.0.7"},
                   {"rangeEnd", "10.0.0.7"},
                   {"minRestSeconds", min_rest_seconds}});
  }
  Answer Run(const std::string& command, const std::string& container, const json& config) {
    return RunIpam(scratch_.path(), {command, container, config.dump()});
  }
  void Boot(const std::string& id) { scratch_.Write("/proc/sys/kernel/random/boot_id", id + "\n"); }

  ScratchRoot scratch_;
};

TEST_F(RestTest, IsCutShortWhereTheConfigurationAllows) {
  ASSERT_EQ(Run("ADD", "a", One(0)).Address(), "10.0.0.7/24");
  ASSERT_EQ(Run("DEL", "a", One(0)).status, 0);
  const std::string error = Run("ADD", "b", One(500)).Error();
  EXPECT_EQ(
      error.rfind("105: no free address in 10.0.0.7 of subnet 10.0.0.0/24: size 1, in use 0, resting 1; the "
                  "next address is free again in ",
                  0),
      0U)
      << error;
  EXPECT_EQ(Run("STATUS", "", One(500)).status, 1);
  EXPECT_EQ(Run("STATUS", "", One(0)).status, 0);
  EXPECT_EQ(Run("ADD", "b", One(0)).Address(), "10.0.0.7/24");
  const auto store = ipam::AddressStore::Open(scratch_.root());
  const auto counters = store->Counters().value().at("10.0.0.0/24");
  EXPECT_EQ(counters, (ipam::PoolCounters{.given = 2, .released = 1, .rest_shortened = 1, .exhausted = 1}));
}

TEST_F(RestTest, TheFabricSaysHowShort) {
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
  write(R"({"minRestSeconds": 0})");
  EXPECT_EQ(Run("ADD", "b", config).Address(), "10.0.0.7/24");
}

TEST_F(RestTest, TheFirstCallOfABootReleasesWhatEarlierOnesHeld) {
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
  for (const ipam::AddressRecord& record : records) EXPECT_EQ(record.state, ipam::AddressState::kResting);
}

}  // namespace
}  // namespace railhead::testing
