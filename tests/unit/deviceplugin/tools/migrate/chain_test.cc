// The plugins of a chain: what becomes of each of their keys.
#include "tests/unit/deviceplugin/tools/migrate/suite.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kFile = "nad_train_net.json";
constexpr const char* kSource = "NetworkAttachmentDefinition train/net";

migrate::Outcome Network(const std::string& config) {
  return Migrated({NetworkObject("net", "nvidia.com/net0", config).dump()});
}

std::string OutcomeAt(const migrate::Outcome& outcome, const std::string& key) {
  return KeyOutcomeOf(outcome, kSource, "/spec/config" + key);
}

TEST(Chain, SriovCnisOptionsAreRailheads) {
  const auto outcome = Network(R"({"cniVersion": "0.4.0", "name": "net", "type": "sriov", "vlan": 1000,
      "vlanQoS": 5, "vlanProto": "802.1ad", "mac": "02:00:00:00:00:07", "spoofchk": "off", "trust": "on",
      "link_state": "enable", "min_tx_rate": 100, "max_tx_rate": 200, "capabilities": {"mac": true},
      "logLevel": "debug", "logFile": "/var/log/sriov.log"})");
  EXPECT_EQ(ConfigOfFile(outcome, kFile),
            Json::parse(R"({"cniVersion": "0.4.0", "name": "net", "type": "railhead", "vlan": 1000,
      "vlanQoS": 5, "vlanProto": "802.1ad", "mac": "02:00:00:00:00:07", "spoofchk": "off", "trust": "on",
      "link_state": "enable", "min_tx_rate": 100, "max_tx_rate": 200, "capabilities": {"mac": true},
      "ipam": {}})"));
  EXPECT_EQ(OutcomeAt(outcome, "/vlan"), "kept as it is");
  EXPECT_EQ(OutcomeAt(outcome, "/type"), "changed to railhead");
  EXPECT_EQ(OutcomeAt(outcome, "/logFile"), "dropped because railhead answers with errors and writes no log");
}

TEST(Chain, WhatSriovCniTakesForOffIsOff) {
  const auto outcome = Network(R"({"type": "sriov", "spoofchk": "On", "trust": "", "vlan": null})");
  const Json config = ConfigOfFile(outcome, kFile);
  EXPECT_EQ(config["spoofchk"], "off");
  EXPECT_FALSE(config.contains("trust"));
  EXPECT_EQ(OutcomeAt(outcome, "/spoofchk"), "changed to off, which is what sriov-cni makes of 'On'");
  EXPECT_EQ(OutcomeAt(outcome, "/trust"), "dropped because it is empty");
  EXPECT_EQ(OutcomeAt(outcome, "/vlan"), "dropped null means absent");
}

TEST(Chain, AnUnknownKeyNeedsADecision) {
  const auto outcome = Network(R"({"type": "sriov", "vlann": 3, "l2enable": {"a": [1]}})");
  EXPECT_NE(OutcomeAt(outcome, "/vlann")
                .find("needsDecision sriov does not know it and ignores it: did you mean vlan?"),
            std::string::npos);
  EXPECT_EQ(OutcomeAt(outcome, "/l2enable/a").rfind("needsDecision", 0), 0U);
  EXPECT_TRUE(outcome.report.NeedsDecision());
  EXPECT_FALSE(ConfigOfFile(outcome, kFile).contains("vlann"));
}

TEST(Chain, RdmaTuningAndSbrBecomeOnePlugin) {
  const auto outcome = Network(R"({"cniVersion": "1.0.0", "name": "fast", "plugins": [
      {"type": "sriov", "mac": "02:00:00:00:00:01"},
      {"type": "rdma", "args": {"cni": {"debug": true, "rdmaDeviceName": "rdma_0"}}, "rdmaQoS": {"tos": 96}},
      {"type": "tuning", "capabilities": {"mac": true}, "mac": "02:00:00:00:00:02", "mtu": 4200,
       "promisc": false, "txQLen": 2000, "allmulti": true, "dataDir": "/run/cni/tuning",
       "sysctl": {"net.ipv4.conf.IFNAME.arp_ignore": "1"}},
      {"type": "sbr", "table": 150, "addSourceHints": true}]})");
  EXPECT_EQ(ConfigOfFile(outcome, kFile),
            Json::parse(R"({"cniVersion": "1.0.0", "name": "fast", "type": "railhead",
      "mac": "02:00:00:00:00:02", "mtu": 4200, "txQLen": 2000, "allmulti": true, "table": 150,
      "capabilities": {"mac": true}, "sysctl": {"net.ipv4.conf.IFNAME.arp_ignore": "1"}, "ipam": {}})"));
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/0/mac"), "dropped because tuning sets another one");
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/1/rdmaQoS/tos").rfind("needsDecision", 0), 0U);
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/1/args/cni/rdmaDeviceName").rfind("needsDecision", 0), 0U);
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/1/args/cni/debug").rfind("dropped", 0), 0U);
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/2/promisc"), "dropped because it changes nothing");
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/3/table"), "kept as it is");
}

TEST(Chain, OtherPluginsStayBehindIt) {
  const auto outcome = Network(R"({"cniVersion": "1.0.0", "disableCheck": true, "plugins": [
      {"type": "sriov", "name": "inner"}, {"type": "tuning", "sysctl": {"kernel.shmmax": "1", "net.core.somaxconn": "5"}},
      {"type": "bandwidth", "ingressRate": 5}, {"type": "our-own", "x": [{"y": 1}]}]})");
  EXPECT_EQ(ConfigOfFile(outcome, kFile),
            Json::parse(R"({"cniVersion": "1.0.0", "name": "net", "disableCheck": true,
      "plugins": [{"type": "railhead", "sysctl": {"net.core.somaxconn": "5"}, "ipam": {}},
        {"type": "tuning", "sysctl": {"kernel.shmmax": "1"}}, {"type": "bandwidth", "ingressRate": 5},
        {"type": "our-own", "x": [{"y": 1}]}]})"));
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/2/type"), "kept in the chain as it is");
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/3/type").rfind("needsDecision stays in the chain", 0), 0U);
  EXPECT_EQ(OutcomeAt(outcome, "/plugins/0/name"), "dropped because the list's own counts");
}

TEST(Chain, HostDeviceByNameNeedsADecision) {
  const auto outcome = Network(R"({"type": "host-device", "device": "ens1f0", "pciBusID": "0000:43:00.1"})");
  EXPECT_EQ(ConfigOfFile(outcome, kFile)["pciBusID"], "0000:43:00.1");
  EXPECT_EQ(OutcomeAt(outcome, "/device").rfind("needsDecision", 0), 0U);
  EXPECT_NE(OutcomeAt(outcome, "/type").find("\"device\": \"pf\""), std::string::npos);
}

TEST(Chain, InfinibandIsNotCarriedOver) {
  const auto outcome = Network(R"({"type": "ib-sriov", "pkey": "0x1"})");
  EXPECT_TRUE(FileOf(outcome, kFile).is_null());
  EXPECT_EQ(OutcomeAt(outcome, "/pkey").rfind("needsDecision", 0), 0U);
}

TEST(Chain, AVersionThatIsNotSpokenBecomesOneThatIs) {
  const auto outcome = Network(R"({"cniVersion": "0.2.0", "type": "sriov"})");
  EXPECT_EQ(ConfigOfFile(outcome, kFile)["cniVersion"], "1.0.0");
  EXPECT_EQ(OutcomeAt(outcome, "/cniVersion"), "changed to 1.0.0, since '0.2.0' is not spoken");
}

TEST(Chain, WhatRailheadWouldRefuseIsRefused) {
  const auto documents =
      DocumentsOf({NetworkObject("net", "", R"({"type": "sriov", "deviceID": "x", "vlan": 5000})").dump()});
  const auto outcome = migrate::Migrate(documents, {});
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("train/net"), std::string::npos) << outcome.error().message;
  EXPECT_NE(outcome.error().message.find("/vlan: 5000 is out of range"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
