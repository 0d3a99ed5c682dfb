// railhead-ipam GC: what no valid attachment of the network holds is released.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ipam/store/allocate.h"
#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

class GcTest : public ::testing::Test {
 protected:
  static json Config(const std::string& network, bool links = false) {
    json ipam{{"type", "railhead-ipam"}};
    if (links) {
      ipam["links"] = json::array({{{"ifname", "rail0"}, {"subnet", "10.0.0.0/24"}},
                                   {{"ifname", "rail1"}, {"subnet", "10.0.1.0/24"}}});
    } else {
      ipam["subnet"] = "10.0.0.0/24";
    }
    return {{"cniVersion", "1.1.0"}, {"name", network}, {"type", "macvlan"}, {"ipam", ipam}};
  }
  void Add(const std::string& network, const std::string& container, const std::string& ifname,
           bool links = false) {
    const Answer added = RunIpam(scratch_.path(), {"ADD", container, Config(network, links).dump(), ifname});
    ASSERT_EQ(added.status, 0) << added.out;
  }
  Answer Gc(const std::string& network, const json& valid) {
    json config = Config(network);
    config["cni.dev/valid-attachments"] = valid;
    return RunIpam(scratch_.path(), {"GC", "", config.dump(), "", ""});
  }
  // "network/container/ifname", sorted.
  std::vector<std::string> Held() {
    std::vector<std::string> held;
    const auto listed = ipam::ListHeld(scratch_.root());
    if (!listed) return {Describe(listed.error())};
    for (const ipam::AddressRecord& record : listed->records) {
      held.push_back(record.owner.network + "/" + record.owner.container + "/" + record.owner.ifname);
    }
    std::sort(held.begin(), held.end());
    return held;
  }
  static json Valid(const std::string& container, const std::string& ifname) {
    return {{"containerID", container}, {"ifname", ifname}};
  }

  ScratchRoot scratch_;
};

TEST_F(GcTest, ReleasesWhatIsNotListed) {
  Add("net", "a", "eth0");
  Add("net", "b", "eth0");
  Add("net", "b", "eth1");
  Add("net", "c", "eth0", true);
  Add("net", "d", "eth0", true);
  const Answer done = Gc("net", {Valid("b", "eth1"), Valid("d", "eth0"), Valid("gone", "eth0")});
  EXPECT_EQ(done.status, 0) << done.out;
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(Held(), (std::vector<std::string>{"net/b/eth1", "net/d/eth0/rail0", "net/d/eth0/rail1"}));
  // Again, and with nothing valid.
  EXPECT_EQ(Gc("net", {Valid("b", "eth1"), Valid("d", "eth0")}).status, 0);
  EXPECT_EQ(Held().size(), 3U);
  EXPECT_EQ(Gc("net", json::array()).status, 0);
  EXPECT_EQ(Held(), std::vector<std::string>{});
  // Released addresses rest.
  Add("net", "e", "eth0");
  const auto held = ipam::ListHeld(scratch_.root());
  EXPECT_EQ(held->records.front().address.ToString(), "10.0.0.6");
}

TEST_F(GcTest, OtherNetworksAreNotItsBusiness) {
  for (const char* network : {"net", "net0", "ne", "other"}) Add(network, "a", "eth0");
  Add("other", "b", "eth0", true);
  EXPECT_EQ(Gc("net", json::array()).status, 0);
  EXPECT_EQ(Held(), (std::vector<std::string>{"ne/a/eth0", "net0/a/eth0", "other/a/eth0",
                                              "other/b/eth0/rail0", "other/b/eth0/rail1"}));
  // A container that another network lists is not listed here.
  EXPECT_EQ(Gc("other", json::array({Valid("b", "eth0")})).status, 0);
  EXPECT_EQ(Held(), (std::vector<std::string>{"ne/a/eth0", "net0/a/eth0", "other/b/eth0/rail0",
                                              "other/b/eth0/rail1"}));
}

TEST_F(GcTest, NamesThatBeginAlike) {
  Add("net", "a", "eth1", true);
  Add("net", "a", "eth10", true);
  EXPECT_EQ(Gc("net", json::array({Valid("a", "eth1")})).status, 0);
  EXPECT_EQ(Held(), (std::vector<std::string>{"net/a/eth1/rail0", "net/a/eth1/rail1"}));
  Add("net", "a", "eth10");
  EXPECT_EQ(Gc("net", json::array({Valid("a", "eth10")})).status, 0);
  EXPECT_EQ(Held(), (std::vector<std::string>{"net/a/eth10"}));
}

// An attachment is named by CNI_IFNAME, never by one of its links.
TEST_F(GcTest, ALinksOwnNameIsNoAttachment) {
  Add("net", "a", "eth0", true);
  EXPECT_EQ(Gc("net", {Valid("a", "rail0"), Valid("a", "eth0/rail0")}).status, 0);
  EXPECT_EQ(Held(), std::vector<std::string>{});
}

TEST_F(GcTest, WithoutASoundListNothingHappens) {
  Add("net", "a", "eth0");
  const std::vector<std::string> before = Held();
  for (const char* list : {"null", "7", R"({"containerID": "a", "ifname": "eth0"})",
                           R"([{"ifname": "eth0"}])", R"([{"containerID": "a", "ifname": "eth0"}, "b"])"}) {
    const std::string error = Gc("net", json::parse(list)).Error();
    EXPECT_EQ(error.substr(0, 2), "7:") << list << ": " << error;
    EXPECT_NE(error.find("/cni.dev~1valid-attachments"), std::string::npos) << list << ": " << error;
    EXPECT_EQ(Held(), before) << list;
  }
  const std::string error = RunIpam(scratch_.path(), {"GC", "", Config("net").dump(), "", ""}).Error();
  EXPECT_NE(error.find("is missing"), std::string::npos) << error;
  EXPECT_EQ(Held(), before);
}

TEST_F(GcTest, BrokenConfigurationAndFabricDoNotMatter) {
  Add("net", "a", "eth0");
  json config = Config("net");
  config["ipam"] = {{"type", "railhead-ipam"}, {"rail", 7}};
  config["cni.dev/valid-attachments"] = json::array();
  EXPECT_EQ(RunIpam(scratch_.path(), {"GC", "", config.dump(), "", ""}).status, 0);
  EXPECT_EQ(Held(), std::vector<std::string>{});
}

TEST_F(GcTest, WithoutAStoreNothingIsMade) {
  EXPECT_EQ(Gc("net", json::array()).status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(GcTest, OlderVersionsHaveNoGc) {
  Add("net", "a", "eth0");
  json config = Config("net");
  config["cniVersion"] = "1.0.0";
  config["cni.dev/valid-attachments"] = json::array();
  EXPECT_EQ(RunIpam(scratch_.path(), {"GC", "", config.dump(), "", ""}).Error().substr(0, 2), "1:");
  EXPECT_EQ(Held().size(), 1U);
}

}  // namespace
}  // namespace railhead::testing
