// All devices of a pod in one ADD: names, order, addresses, tables, NCCL configuration, and what
// cannot be said of several at once.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "cni/state/journal.h"
#include "netns/base/text.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {
namespace {

using Names = std::vector<std::string>;

class PluginRailsTest : public RailsFixture {
 protected:
  static nlohmann::json Json(const Result<std::string>& result) {
    return result ? nlohmann::json::parse(*result, nullptr, false) : nlohmann::json();
  }
  // ADD fails with `code`, the message contains `words`, and nothing changed.
  void Refused(const Call& call, int code, const std::string& words) {
    SCOPED_TRACE(call.config);
    const auto before = World();
    const auto added = Add(call);
    ASSERT_FALSE(added);
    EXPECT_EQ(CniCodeOf(added.error().code), code) << Describe(added.error());
    EXPECT_NE(Describe(added.error()).find(words), std::string::npos) << Describe(added.error());
    EXPECT_EQ(ChangedSince(before), "");
  }
  Call Of(const std::vector<std::string>& bdfs) const {
    return {.config = Devices(bdfs) + "," + IpamForAll()};
  }
};

TEST_F(PluginRailsTest, AttachesAllAndDetachesAll) {
  const auto before = World();
  const auto added = Add(AllRails());
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(pod_), (Names{"rail0", "rail1", "rail2"}));
  for (const int rail : {0, 1, 2}) {
    const Link link = PodLink("rail" + std::to_string(rail));
    EXPECT_EQ(link.parent_device, Bdf(rail));
    EXPECT_TRUE(link.up && link.carrier);
    EXPECT_EQ(Vf(0, rail).vlan->id, 100 * (rail + 1));
  }
  EXPECT_EQ(IpamLog(), "ADD rail0, ADD rail1, ADD rail2");
  const auto checked = Check(AllRails());
  EXPECT_TRUE(checked) << Describe(checked.error());
  EXPECT_EQ(IpamLog(), "CHECK rail0, CHECK rail1, CHECK rail2");
  const auto deleted = Del(AllRails());
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(IpamLog(), "DEL rail2, DEL rail1, DEL rail0");
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRailsTest, OneEntryListsAllLinks) {
  ASSERT_TRUE(Add(AllRails()));
  const Journal journal(sysfs_.root());
  const auto scan = journal.Scan();
  ASSERT_TRUE(scan);
  ASSERT_EQ(scan->entries.size(), 1U);
  EXPECT_EQ(scan->entries.front().key, (AttachmentKey{"rails", "c1", "net1"}));
  EXPECT_EQ(scan->entries.front().devices.size(), 3U);
  for (const int rail : {0, 1, 2}) EXPECT_TRUE(journal.FindByDevice(Bdf(rail))->has_value());
}

TEST_F(PluginRailsTest, ResultListsThemRailByRail) {
  const auto json = Json(Add({.config = Devices({Bdf(2), Bdf(0), Bdf(1)}) + "," + IpamForAll()}));
  ASSERT_EQ(json["interfaces"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json["interfaces"][i]["name"], "rail" + std::to_string(i));
    EXPECT_EQ(json["interfaces"][i]["sandbox"], pod_);
    EXPECT_EQ(json["ips"][i]["interface"], i);
  }
  EXPECT_EQ(json["ips"][0]["address"], "10.100.0.10/24");
  EXPECT_EQ(json["ips"][1]["address"], "10.200.0.10/24");
  EXPECT_EQ(json["ips"][2]["gateway"], "10.150.0.254");
}

// As the specification asks of a chained plugin: what came before stays, with its indices.
TEST_F(PluginRailsTest, ChainedBehindTheClusterNetwork) {
  Call call = AllRails();
  call.config += R"(,"prevResult":{"cniVersion":"1.0.0",
      "interfaces":[{"name":"cali0"},{"name":"eth0","sandbox":"x"}],
      "ips":[{"address":"10.244.0.5/24","gateway":"10.244.0.1","interface":1}],
      "routes":[{"dst":"0.0.0.0/0"}],"dns":{"nameservers":["10.96.0.10"]}})";
  const auto before = World();
  const auto added = Add(call);
  const auto json = Json(added);
  ASSERT_EQ(json["interfaces"].size(), 5U);
  EXPECT_EQ(json["interfaces"][0]["name"], "cali0");
  EXPECT_EQ(json["interfaces"][1]["name"], "eth0");
  EXPECT_EQ(json["interfaces"][2]["name"], "rail0");
  ASSERT_EQ(json["ips"].size(), 4U);
  EXPECT_EQ(json["ips"][0]["interface"], 1);
  EXPECT_EQ(json["ips"][1]["interface"], 2);
  EXPECT_EQ(json["ips"][3]["interface"], 4);
  EXPECT_EQ(json["routes"][0]["dst"], "0.0.0.0/0");
  EXPECT_EQ(json["dns"]["nameservers"][0], "10.96.0.10");
  Call with_ours = AllRails();
  with_ours.config += R"(,"prevResult":)" + *added;
  const auto checked = Check(with_ours);
  EXPECT_TRUE(checked) << Describe(checked.error());
  ASSERT_TRUE(Del(with_ours));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRailsTest, SecondDeviceOfARailHasANumber) {
  ASSERT_TRUE(Add({.config = Devices({Bdf(0, 2), Bdf(1), Bdf(0, 1)}) + R"(,"ipam":{})"}));
  EXPECT_EQ(OurLinks(pod_), (Names{"rail0", "rail0-1", "rail1"}));
  EXPECT_EQ(PodLink("rail0").parent_device, Bdf(0, 1)) << "by address";
  EXPECT_EQ(PodLink("rail0-1").parent_device, Bdf(0, 2));
}

TEST_F(PluginRailsTest, WithoutRailTheyAreNics) {
  std::filesystem::remove(sysfs_.directory() + "/etc/railhead/fabric.json");
  const Call call{.config = Devices({Bdf(1), Bdf(0)})};
  const auto before = World();
  const auto added = Add(call);
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(pod_), (Names{"nic0", "nic1"}));
  EXPECT_EQ(PodLink("nic0").parent_device, Bdf(0));
  EXPECT_TRUE(Check(call));
  ASSERT_TRUE(Del(call));
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(PluginRailsTest, RailsComeBeforeOtherNics) {
  WriteRails({{"rail1", "pf1"}, {"rail2", "pf2"}});
  const auto json = Json(Add({.config = Devices({Bdf(0), Bdf(1), Bdf(2)}) + R"(,"ipam":{})"}));
  ASSERT_EQ(json["interfaces"].size(), 3U);
  EXPECT_EQ(json["interfaces"][0]["name"], "rail1");
  EXPECT_EQ(json["interfaces"][1]["name"], "rail2");
  EXPECT_EQ(json["interfaces"][2]["name"], "nic0");
}

TEST_F(PluginRailsTest, OrderIsTheFabrics) {
  WriteRails({{"green", "pf2"}, {"blue", "pf0"}});
  const auto json = Json(Add({.config = Devices({Bdf(0), Bdf(2)}) + R"(,"ipam":{})"}));
  ASSERT_EQ(json["interfaces"].size(), 2U);
  EXPECT_EQ(json["interfaces"][0]["name"], "green");
  EXPECT_EQ(json["interfaces"][1]["name"], "blue");
}

TEST_F(PluginRailsTest, NamesThatAreNone) {
  WriteRails({{"a-rail-with-a-long-name", "pf0"}, {"rail1", "pf1"}});
  Refused(Of({Bdf(0), Bdf(1)}), kCniInvalidConfig, "is not an interface name");
  WriteRails({{"thirteen-char", "pf0"}, {"rail1", "pf1"}});
  const auto added = Add({.config = Devices({Bdf(0), Bdf(0, 1)}) + R"(,"ipam":{})"});
  ASSERT_TRUE(added) << Describe(added.error());
  EXPECT_EQ(OurLinks(pod_), (Names{"thirteen-char", "thirteen-char-1"}));
}

// Two links of one name would collide in the middle of the moves.
TEST_F(PluginRailsTest, NamesThatCollide) {
  WriteRails({{"rail0", "pf0"}, {"rail0-1", "pf1"}});
  Refused({.config = Devices({Bdf(0), Bdf(0, 1), Bdf(1)}) + R"(,"ipam":{})"}, kCniInvalidConfig, "'rail0-1'");
  WriteRails({{"nic0", "pf0"}, {"rail1", "pf1"}});
  Refused({.config = Devices({Bdf(0), Bdf(2)}) + R"(,"ipam":{})"}, kCniInvalidConfig, "'nic0'");
  WriteRails({{"eth0", "pf0"}, {"rail1", "pf1"}});
  Refused({.config = Devices({Bdf(0), Bdf(1)}) + R"(,"ipam":{})"}, kCniExists,
          "interface eth0 exists already");
}

TEST_F(PluginRailsTest, DeviceNamedTwiceIsOne) {
  ASSERT_TRUE(Add({.config = Devices({Bdf(0), Bdf(0)}) + R"(,"ipam":{})"}));
  EXPECT_EQ(OurLinks(pod_), Names{"rail0"}) << "named by rail although it is one";
}

TEST_F(PluginRailsTest, WhatCanOnlyBeMeantForOne) {
  for (const char* field : {R"("mac":"02:aa:00:00:00:01")", R"("table":7000)", R"("rail":"rail0")",
                            R"("gateway":"10.100.0.1")", R"("altNames":["x"])", R"("alias":"x")"}) {
    Call call = AllRails();
    call.config += std::string(",") + field;
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    if (name == "alias") {  // may be the same for all
      EXPECT_TRUE(Add(call));
      ASSERT_TRUE(Del(call));
    } else {
      Refused(call, kCniInvalidConfig, "/" + name + ": cannot be the same for 3 devices");
    }
  }
  Call by_args = AllRails();
  by_args.args = "MAC=02:aa:00:00:00:01";
  Refused(by_args, kCniInvalidConfig, "/mac: cannot be the same for 3 devices");
  EXPECT_TRUE(Add({.config = Devices({Bdf(0)}) + R"(,"ipam":{},"mac":"02:aa:00:00:00:01")"}))
      << "one device is one";
}

TEST_F(PluginRailsTest, DevicesBesideADevice) {
  const std::string devices = Devices({Bdf(0), Bdf(1)}) + R"(,"ipam":{},)";
  for (const std::string& device : {R"("deviceID":")" + Bdf(2) + "\"", R"("pciBusID":")" + Bdf(2) + "\"",
                                    R"("runtimeConfig":{"deviceID":")" + Bdf(2) + "\"}"}) {
    Refused({.config = devices + device}, kCniInvalidConfig, "/devices: stands beside a deviceID");
  }
  Refused({.config = Devices({"eth0"})}, kCniInvalidConfig, "/devices: 'eth0' is not a PCI address");
}

TEST_F(PluginRailsTest, OneNcclConfigNamesAll) {
  ASSERT_TRUE(Add(AllRails()));
  EXPECT_EQ(File("/run/railhead/nccl/c1/nccl.conf"),
            "NCCL_IB_HCA==mlx5_pf0v0,mlx5_pf1v0,mlx5_pf2v0\nNCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\n"
            "NCCL_SOCKET_IFNAME==eth0\n");
  for (const int rail : {0, 1, 2}) {
    EXPECT_NE(File("/run/cdi/railhead-" + Bdf(rail) + ".json"), "") << "rail " << rail;
  }
}

TEST_F(PluginRailsTest, EachHasItsTable) {
  ASSERT_TRUE(Add(AllRails()));
  Names rules;
  for (const auto& rule : kernel_.state().Namespace(pod_)->rules) {
    if (rule.priority == 0 || rule.priority >= 32766) continue;
    rules.push_back((rule.from ? rule.from->ToString() : rule.oif) + " " + std::to_string(rule.table));
  }
  std::sort(rules.begin(), rules.end());
  EXPECT_EQ(rules, (Names{"10.100.0.10/32 100", "10.150.0.10/32 102", "10.200.0.10/32 101", "rail0 100",
                          "rail1 101", "rail2 102"}));
}

// The seventh of seven fails: the six before it are restored, and their addresses released.
TEST_F(PluginRailsTest, LastOneFailsAllAreRestored) {
  FailIpam("ADD-rail2");
  Refused(AllRails(), kCniExhausted, "no address left");
  EXPECT_EQ(IpamLog(), "ADD rail0, ADD rail1, ADD rail2, DEL rail2, DEL rail1, DEL rail0");
  FailIpam("");
  kernel_.state().Find(kHost, "pf2")->wire = false;
  kernel_.Sync();
  Call call = AllRails();
  call.config += R"(,"linkTimeoutSeconds":0)";
  Refused(call, kCniTryAgainLater, "rail2 (" + Bdf(2) + ") has no carrier");
  kernel_.state().Find(kHost, "pf2")->wire = true;
  kernel_.FailEvery("MoveLink", EBUSY, "rail2");
  Refused(AllRails(), kCniTryAgainLater, "moving " + Bdf(2));
  kernel_.StopFailing();
  EXPECT_TRUE(Add(AllRails()));
}

TEST_F(PluginRailsTest, OneOfThemInAnotherPod) {
  ASSERT_TRUE(Add(
      {.container = "c0", .netns = MakePod("pod0"), .config = R"("ipam":{},"deviceID":")" + Bdf(1) + "\""}));
  Refused(AllRails(), kCniTryAgainLater, "device " + Bdf(1) + " is in the pod of container c0");
}

TEST_F(PluginRailsTest, DelAfterTheNamespaceVanished) {
  const auto without_pod = [this] {
    kernel_.RemoveNamespace(pod_);
    return World();
  };
  const auto before = without_pod();
  pod_ = MakePod("pod1");
  ASSERT_TRUE(Add(AllRails()));
  (void)without_pod();
  const auto deleted = Del(AllRails());
  ASSERT_TRUE(deleted) << Describe(deleted.error());
  EXPECT_EQ(ChangedSince(before), "");
}

// One of three cannot be restored: the others are, and DEL is repeated for it.
TEST_F(PluginRailsTest, DelRestoresTheOthersEvenIfOneIsRefused) {
  const auto before = World();
  ASSERT_TRUE(Add(AllRails()));
  kernel_.FailEvery("MoveLink", EBUSY, "pf1v0");
  const auto refused = Del(AllRails());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(Bdf(1)), std::string::npos) << refused.error().message;
  EXPECT_EQ(OurLinks(pod_), Names{"pf1v0"}) << "renamed for the host already";
  EXPECT_EQ(HeldAddresses(), "c1@rail0 c1@rail1 c1@rail2") << "kept as long as a device may have them";
  kernel_.StopFailing();
  ASSERT_TRUE(Del(AllRails()));
  EXPECT_EQ(ChangedSince(before), "");
}

}  // namespace
}  // namespace railhead::testing
