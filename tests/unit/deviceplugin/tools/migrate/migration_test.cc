// A whole suite: what it becomes, that it can be read, and that each key is reported once.
#include "deviceplugin/tools/migrate/migration.h"

#include "cni/attachment/check_permissions.h"
#include "cni/attachment/plugin_config.h"
#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/migrate/migration_report.h"
#include "tests/unit/deviceplugin/tools/migrate/suite.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

std::string Sriov(const std::string& more) {
  return R"({"cniVersion": "1.0.0", "type": "sriov")" + more + "}";
}

Json Rail(const migrate::Outcome& outcome, std::size_t index) {
  return FileOf(outcome, "fabric.json")["rails"][index];
}

TEST(Migration, WhatAllNetworksOfARailSayIsTheRails) {
  const std::string same = R"(, "vlan": 100, "vlanQoS": 3, "trust": "on")";
  const auto outcome = Migrated({DeviceConfigOf({{"net0", "ens1f0"}, {"net1", "ens2f0"}}),
                                 NetworkObject("a", "nvidia.com/net0", Sriov(same)).dump(),
                                 NetworkObject("b", "nvidia.com/net0", Sriov(same)).dump(),
                                 NetworkObject("c", "nvidia.com/net1", Sriov(same)).dump(),
                                 NetworkObject("d", "nvidia.com/net1", Sriov(R"(, "vlan": 101)")).dump()});
  EXPECT_EQ(Rail(outcome, 0)["vlan"], 100);
  EXPECT_EQ(Rail(outcome, 0)["vlanQoS"], 3);
  EXPECT_FALSE(ConfigOfFile(outcome, "nad_train_a.json").contains("vlan"));
  EXPECT_EQ(ConfigOfFile(outcome, "nad_train_a.json")["trust"], "on");
  EXPECT_EQ(KeyOutcomeOf(outcome, "train/a", "/spec/config/vlan"), "changed to /rails/0/vlan of fabric.json");
  EXPECT_FALSE(Rail(outcome, 1).contains("vlan")) << "its networks differ";
  EXPECT_EQ(ConfigOfFile(outcome, "nad_train_d.json")["vlan"], 101);
  EXPECT_EQ(KeyOutcomeOf(outcome, "train/d", "/spec/config/vlan"), "kept as it is");
}

// Without the rule, railhead would refuse the migrated network. With each entry removed from it, too.
TEST(Migration, NetworksMayDoWhatTheySayAndNoMore) {
  const std::string says = R"(, "vlan": 100, "trust": "on", "ipam": {"type": "static"})";
  const auto outcome = Migrated({DeviceConfigOf({{"net0", "ens1f0"}}),
                                 NetworkObject("a", "nvidia.com/net0", Sriov(says)).dump(),
                                 NetworkObject("b", "nvidia.com/net0", Sriov("")).dump()});
  const Json file = FileOf(outcome, "fabric.json");
  ASSERT_EQ(file["policy"]["networks"].size(), 1U) << "b says nothing";
  EXPECT_EQ(file["policy"]["networks"][0],
            Json({{"networks", {"a"}}, {"allow", {"trust", "vlan"}}, {"ipam", {"static"}}}));
  CniRequest request;
  request.network = "a";
  request.config = ConfigOfFile(outcome, "nad_train_a.json").dump();
  request.args["K8S_POD_NAME"] = "pod";
  const auto config = attachment::ReadPluginConfig(request);
  ASSERT_TRUE(config) << Describe(config.error());
  const auto allowed = [&](const Json& fabric) {
    const auto read = ParseFabric(fabric.dump(), "fabric.json");
    EXPECT_TRUE(read) << Describe(read.error());
    return CheckPermissions(CallPermissions(*read, "a", request.args), request, *config).has_value();
  };
  EXPECT_TRUE(allowed(file));
  for (const auto& [key, at] : {std::pair("allow", 0), std::pair("allow", 1), std::pair("ipam", 0)}) {
    Json less = file;
    less["policy"]["networks"][0][key].erase(static_cast<std::size_t>(at));
    EXPECT_FALSE(allowed(less)) << key << " " << at;
  }
}

// A pod of this network without VLAN would otherwise get the rail's.
TEST(Migration, ANetworkWithoutAVlanKeepsTheRailWithout) {
  const auto outcome = Migrated({DeviceConfigOf({{"net0", "ens1f0"}}),
                                 NetworkObject("a", "nvidia.com/net0", Sriov(R"(, "vlan": 100)")).dump(),
                                 NetworkObject("b", "nvidia.com/net0", Sriov("")).dump()});
  EXPECT_FALSE(Rail(outcome, 0).contains("vlan"));
  EXPECT_EQ(ConfigOfFile(outcome, "nad_train_a.json")["vlan"], 100);
}

TEST(Migration, ANetworkOverSeveralRailsKeepsWhatItSays) {
  const auto outcome = Migrated(
      {R"({"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["ens1f0", "ens2f0"]}}]})",
       NetworkObject("a", "intel.com/net",
                     Sriov(R"(, "vlan": 100, "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"})"))
           .dump()});
  EXPECT_FALSE(Rail(outcome, 0).contains("vlan"));
  EXPECT_FALSE(Rail(outcome, 1).contains("subnet"));
  EXPECT_EQ(ConfigOfFile(outcome, "nad_train_a.json")["ipam"]["range"], "10.0.0.0/16");
}

TEST(Migration, TwoNetworksOfOneNameAreRefused) {
  const auto documents =
      DocumentsOf({NetworkObject("a", "", Sriov("")).dump(), NetworkObject("a", "", Sriov("")).dump()});
  const auto outcome = migrate::Migrate(documents, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kConflict);
  EXPECT_NE(outcome.error().message.find("train/a: is there twice"), std::string::npos)
      << outcome.error().message;
}

TEST(Migration, TheOperatorsConfigMapHasOneForEachNode) {
  const Json map = {{"kind", "ConfigMap"},
                    {"metadata", {{"name", "device-plugin-config"}}},
                    {"data",
                     {{"gpu-1", DeviceConfigOf({{"net0", "ens1f0"}})},
                      {"gpu-2", DeviceConfigOf({{"net0", "ens9f0"}})},
                      {"gpu-3", DeviceConfigOf({{"net0", "ens9f0"}})}}}};
  const auto all = migrate::Migrate(DocumentsOf({map.dump()}), {});
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("differ: input: ConfigMap device-plugin-config: gpu-1"),
            std::string::npos)
      << all.error().message;
  migrate::Options options;
  options.node = "gpu-1";
  EXPECT_EQ(Rail(Migrated({map.dump()}, options), 0)["pf"], "ens1f0");
}

TEST(Migration, NetworksAloneSayAllByThemselves) {
  const auto outcome = Migrated({NetworkObject("a", "nvidia.com/net0", Sriov(R"(, "vlan": 100)")).dump(),
                                 NetworkObject("b", "", Sriov("")).dump(),
                                 NetworkObject("c", "", R"({"type": "macvlan"})").dump()});
  EXPECT_TRUE(FileOf(outcome, "fabric.json").is_null());
  EXPECT_EQ(ConfigOfFile(outcome, "nad_train_a.json")["vlan"], 100);
  EXPECT_EQ(KeyOutcomeOf(outcome, "train/a", "/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName")
                .rfind("needsDecision", 0),
            0U);
  EXPECT_NE(KeyOutcomeOf(outcome, "train/b", "/metadata/name").find("would attach all of the pod's devices"),
            std::string::npos);
  ASSERT_EQ(outcome.report.untouched.size(), 1U);
  EXPECT_NE(outcome.report.untouched[0].find("train/c"), std::string::npos);
}

TEST(Migration, ResourcesThatAreLeftOutNeedADecision) {
  const auto outcome = Migrated({R"({"ResourceList": [
      {"resourceName": "a", "deviceType": "netDevice", "excludeTopology": true,
       "selectors": [{"PFNames": ["ens1f0#0-3"], "vendors": ["15b3"], "isRdma": true, "needVhostNet": false}]},
      {"resourceName": "b", "selectors": {"pfNames": ["ens1f0#4-7"]}},
      {"resourceName": "c", "selectors": {"vendors": ["8086"]}, "additionalInfo": {"*": {"x": "y"}}}]})"});
  const auto of_key = [&](const std::string& key) {
    return KeyOutcomeOf(outcome, "input", "/ResourceList" + key);
  };
  EXPECT_NE(of_key("/0/selectors/0/PFNames").find("needsDecision the range of VFs of ens1f0"),
            std::string::npos);
  EXPECT_EQ(of_key("/0/selectors/0/isRdma"),
            "changed to \"ncclConfig\": \"required\" in /pools/0 of fabric.json");
  EXPECT_EQ(of_key("/0/selectors/0/needVhostNet"), "dropped because it asks for nothing");
  EXPECT_EQ(of_key("/0/selectors/0/vendors").rfind("dropped because a pool takes all VFs", 0), 0U);
  EXPECT_EQ(of_key("/0/excludeTopology").rfind("needsDecision", 0), 0U);
  EXPECT_NE(of_key("/1/resourceName").find("needsDecision rail0 is in the pool intel.com/a, too"),
            std::string::npos);
  EXPECT_EQ(of_key("/2/selectors/vendors").rfind("needsDecision left out: no selector names its PFs", 0), 0U);
  EXPECT_EQ(of_key("/2/additionalInfo/*/x").rfind("needsDecision left out", 0), 0U);
}

TEST(Migration, HeldAddressesStayTheirPods) {
  auto documents = DocumentsOf({NetworkObject("a", "", Sriov(R"(, "name": "net", "deviceID": "0000:43:00.1",
         "ipam": {"type": "host-local", "subnet": "10.56.0.0/24", "dataDir": "/run/addresses"})"))
                                    .dump()});
  documents.held.push_back({"/run/addresses/net", "net", {*IpAddress::Parse("10.56.0.7")}});
  documents.held.push_back({"/run/addresses/net2", "net2", {*IpAddress::Parse("10.56.0.8")}});
  documents.held.push_back({"/copy/net", "net", {*IpAddress::Parse("10.99.0.8")}});
  const auto outcome = migrate::Migrate(documents, {});
  ASSERT_TRUE(outcome) << Describe(outcome.error());
  EXPECT_EQ(KeyOutcomeOf(*outcome, "/run/addresses/net", "addresses").rfind("kept 1 address in use", 0), 0U);
  EXPECT_EQ(KeyOutcomeOf(*outcome, "/run/addresses/net2", "addresses").rfind("needsDecision", 0), 0U);
  EXPECT_NE(KeyOutcomeOf(*outcome, "/copy/net", "addresses").find("10.99.0.8 is in no subnet"),
            std::string::npos);
  const auto& steps = outcome->report.steps;
  EXPECT_EQ(std::count(steps.begin(), steps.end(),
                       "On the node of /run/addresses/net: `railctl ipam import host-local --network net "
                       "--directory /run/addresses --subnet 10.56.0.0/24`"),
            1);
}

TEST(Migration, WhatTheApiServerAndOthersWrote) {
  Json object = NetworkObject("a", "nvidia.com/net0", Sriov(""));
  object["metadata"]["uid"] = "1-2";
  object["metadata"]["labels"]["team"] = "x";
  object["metadata"]["managedFields"] = {
      {{"manager", "kubectl"}, {"fieldsV1", {{"f:spec", Json::object()}}}}};
  object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "{}";
  object["metadata"]["ownerReferences"] = {{{"kind", "SriovNetwork"}, {"name", "a"}}};
  const auto outcome = Migrated({object.dump()});
  const Json metadata = FileOf(outcome, "nad_train_a.json")["metadata"];
  EXPECT_EQ(metadata, Json::parse(R"({"name": "a", "namespace": "train", "labels": {"team": "x"},
      "annotations": {"k8s.v1.cni.cncf.io/resourceName": "nvidia.com/net0"}})"));
  EXPECT_EQ(KeyOutcomeOf(outcome, "train/a", "/metadata/ownerReferences/0/kind").rfind("needsDecision", 0),
            0U);
}

// Documents whose keys are of all kinds.
std::vector<std::string> ManyDocuments() {
  Json bare = NetworkObject("bare", "nvidia.com/net0", "");
  bare["spec"] = Json::object();
  return {DeviceConfigOf({{"net0", "ens1f0"}, {"net1", "0000:c3:00.0#0-3"}, {"net2", "ens3f0"}}),
          bare.dump(),
          NetworkObject("single", "nvidia.com/net0",
                        Sriov(R"(, "vlan": 3, "x": [[{"y": []}], {"z": null}], "runtimeConfig":
          {"mac": "02:00:00:00:00:01"}, "ipam": {"type": "static", "addresses": [{"address": "10.0.0.1/24"}], "dns": {}})"))
              .dump(),
          NetworkObject("chain", "nvidia.com/net1",
                        R"({"cniVersion": "0.3.1", "name": "n", "disableGC": true, "plugins": [
          {"type": "sriov", "trust": "on", "ipam": {"type": "whereabouts", "range": "10.0.0.5-10.0.0.9/24",
           "exclude": ["10.0.0.6/32"], "reconciler_cron_expression": "", "nonsense": {"deep": [1, {"er": 2}]}}},
          {"type": "rdma", "extra": 1}, {"type": "tuning", "sysctl": {"a/b~c": "1", "net.a.b": "2"}, "ipam": {}},
          {"type": "sbr", "extra": {}}, {"type": "foo", "list": [{"a": 1}, 2]}]})")
              .dump(),
          NetworkObject("dhcp", "nvidia.com/net2",
                        Sriov(R"(, "ipam": {"type": "dhcp", "request": [{"option": "a"}]})"))
              .dump(),
          NetworkObject("ib", "nvidia.com/net2",
                        R"({"type": "ib-sriov", "pkey": "1", "ipam": {"type": "host-local",
          "ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "10.0.1.0/24", "gateway": ""}]], "rangeStart": null}})")
              .dump()};
}

TEST(Migration, EachKeyIsReportedOnceAndTheOutcomeCanBeRead) {
  const auto texts = ManyDocuments();
  const auto documents = DocumentsOf(texts);
  const auto outcome = Migrated(texts);
  ASSERT_EQ(outcome.report.documents.size(), texts.size());
  EXPECT_EQ(KeysReported(outcome.report.documents[0]), KeysOf(Json::parse(texts[0])));
  for (std::size_t i = 1; i < texts.size(); ++i) {
    const auto& report = outcome.report.documents[i];
    EXPECT_EQ(report.source, documents.networks[i - 1].source);
    EXPECT_EQ(KeysReported(report), KeysOf(documents.networks[i - 1].object)) << report.source;
  }
  std::string fabric;
  for (const auto& file : outcome.files) {
    if (file.name == "fabric.json") fabric = file.content;
  }
  EXPECT_TRUE(ParseFabric(fabric, "fabric.json"));
  const std::string text = ReportAsMarkdown(outcome.report);
  for (const auto& document : outcome.report.documents)
    EXPECT_NE(text.find(document.source), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
