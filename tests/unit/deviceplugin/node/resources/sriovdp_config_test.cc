#include "deviceplugin/node/resources/sriovdp_config.h"

#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/snapshot/detect_config.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/tools/migrate/resources.h"
#include "netns/json/record_io.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/unit/deviceplugin/node/resources/other_devices.h"

namespace railhead::testing {
namespace {

Result<std::vector<resources::ResourceSpec>> Parse(const std::string& text) {
  return resources::ParseSriovdpConfig(text, "config.json", "intel.com");
}

std::string WithSelectors(const std::string& selectors) {
  return R"({"resourceList": [{"resourceName": "net", "selectors": )" + selectors + "}]}";
}

class SriovdpConfigTest : public TwoRails {
 protected:
  std::vector<std::string> Selected(const std::string& selectors) const {
    const auto specs = Parse(WithSelectors(selectors));
    if (!specs) {
      ADD_FAILURE() << Describe(specs.error());
      return {};
    }
    return IdsOf(*BuildPools(*specs, *Discover()).front());
  }
};

TEST_F(SriovdpConfigTest, ReadsAnExampleWithKeysOfEveryCase) {
  const auto specs = Parse(R"({
    "ResourceList": [
      {"resourcename": "mlnx_rdma", "ResourcePrefix": "nvidia.com", "EXCLUDETOPOLOGY": true,
       "additionalInfo": {"*": {"token": "a"}, "0000:43:02.0": {"token": "b"}},
       "selectors": {"Vendors": ["15b3"], "pciaddresses": ["0000:43:02.0"], "IsRdma": true, "needvhostnet": false}},
      {"resourceName": "second", "deviceType": "netdevice", "selectors": [{"pfnames": ["pf1#0-1,3"]}, {"drivers": ["x"]}]}
    ]})");
  ASSERT_TRUE(specs) << Describe(specs.error());
  ASSERT_EQ(specs->size(), 2U);
  const resources::ResourceSpec& first = (*specs)[0];
  EXPECT_EQ(first.resource, "nvidia.com/mlnx_rdma");
  EXPECT_TRUE(first.exclude_topology);
  EXPECT_EQ(first.nccl_config, NcclConfigPolicy::kOff);
  EXPECT_EQ(first.device_nodes, DeviceNodeMode::kMount);
  EXPECT_EQ(first.rdma_nodes, resources::RdmaNodes::kAll);
  EXPECT_EQ(first.additional_info.at("0000:43:02.0").at("token"), "b");
  const resources::ResourceSpec& second = (*specs)[1];
  EXPECT_EQ(second.resource, "intel.com/second");
  EXPECT_EQ(second.rdma_nodes, resources::RdmaNodes::kNone);
  EXPECT_EQ(second.selectors.size(), 2U);
}

// The SR-IOV operator marshals that program's structures, of any of its releases: fields without a tag have
// Go's names, and what nobody has set is null (renderDevicePluginConfigData in
// controllers/sriovnetworknodepolicy_controller.go).
TEST_F(SriovdpConfigTest, WhatTheSriovOperatorWrites) {
  const std::string selectors = R"({"vendors":["15b3"],"pfNames":["pf0#0-1"],"rootDevices":["0000:43:00.0"],
      "linkTypes":["ether"],"IsRdma":false,"NeedVhostNet":false})";
  for (
      const std::string more :
      {"", R"(,"SelectorObjs":null)", R"(,"SelectorObj":null)",
       R"(,"SelectorObjs":[{"vendors":["15b3"],"IsRdma":false}])", R"(,"selectorObjs":[])",
       R"(,"SelectorObj":{"unknown":[null]},"additionalInfo":null,"deviceType":null,"resourcePrefix":null,"excludeTopology":null)"}) {
    const auto specs =
        Parse(R"({"resourceList":[{"resourceName":"mlx_rail0","selectors":)" + selectors + more + "}]}");
    ASSERT_TRUE(specs) << more << ": " << Describe(specs.error());
    ASSERT_EQ(specs->size(), 1U);
    EXPECT_EQ(IdsOf(*BuildPools(*specs, *Discover()).front()), (std::vector<std::string>{vfs0_[0], vfs0_[1]}))
        << more;
  }
  const auto none = Parse(R"({"resourceList":null})");
  ASSERT_TRUE(none) << Describe(none.error());
  EXPECT_TRUE(none->empty());
}

// No value of a selector that is null selects anything else than without it.
TEST_F(SriovdpConfigTest, NullIsAbsent) {
  const auto all = Selected("{}");
  for (const char* key :
       {"vendors", "devices", "drivers", "pciAddresses", "acpiIndexes", "pfNames", "rootDevices", "linkTypes",
        "isRdma", "needVhostNet", "pKeys", "vdpaType", "ddpProfiles"})
    EXPECT_EQ(Selected(std::string("{\"") + key + "\": null}"), all) << key;
}

TEST_F(SriovdpConfigTest, SelectsAsThatProgramDoes) {
  EXPECT_EQ(Selected(R"({"pfNames": ["PF0#1-2"]})"), (std::vector<std::string>{vfs0_[1], vfs0_[2]}));
  EXPECT_EQ(Selected(R"({"pfNames": ["pf0#0,3"]})"), (std::vector<std::string>{vfs0_[0], vfs0_[3]}));
  EXPECT_EQ(Selected(R"({"rootDevices": ["0000:83:00.0#2-99"]})"),
            (std::vector<std::string>{vfs1_[2], vfs1_[3]}));
  EXPECT_EQ(Selected(R"({"pciAddresses": ["0000:83:02.1", "0000:99:00.0"]})"),
            (std::vector<std::string>{vfs1_[1]}));
  EXPECT_EQ(Selected(R"({"vendors": ["8086"]})"), (std::vector<std::string>{}));
  EXPECT_EQ(Selected(R"({"devices": ["101E"], "linkTypes": ["ether"], "pfNames": ["pf1"]})"), vfs1_);
  EXPECT_EQ(Selected(R"({"linkTypes": ["infiniband"]})"), (std::vector<std::string>{}));
  EXPECT_EQ(Selected(R"([{"pfNames": ["pf1#0"]}, {"pfNames": ["pf0#0"]}])"),
            (std::vector<std::string>{vfs0_[0], vfs1_[0]}));
  EXPECT_EQ(Selected("{}").size(), 8U) << "PFs with VFs are not given out";
  sysfs_.Unbind(vfs0_[0]);
  EXPECT_EQ(Selected("{}").size(), 7U);
}

TEST_F(SriovdpConfigTest, IsRdmaSelectsOnlyWhenTrue) {
  sysfs_.AddPf({.address = "0000:c3:00.0", .netdev = "plain", .total_vfs = 0});
  EXPECT_EQ(Selected(R"({"isRdma": true})").size(), 8U);
  EXPECT_EQ(Selected(R"({"isRdma": false})").size(), 9U);
}

TEST_F(SriovdpConfigTest, ADeviceIsInTheFirstPoolOnly) {
  const auto specs = Parse(R"({"resourceList": [
      {"resourceName": "a", "selectors": {"pfNames": ["pf0#0-1"]}},
      {"resourceName": "b", "selectors": {"vendors": ["15b3"]}}]})");
  ASSERT_TRUE(specs);
  const auto pools = BuildPools(*specs, *Discover());
  EXPECT_EQ(IdsOf(*pools[0]), (std::vector<std::string>{vfs0_[0], vfs0_[1]}));
  EXPECT_EQ(pools[1]->members.size(), 6U);
  EXPECT_EQ(pools[1]->Find(vfs0_[0]), nullptr);
}

struct Wrong {
  const char* text;
  const char* says;
};

class SriovdpConfigRefuses : public ::testing::TestWithParam<Wrong> {};

TEST_P(SriovdpConfigRefuses, WithTheJsonPointer) {
  const auto specs = Parse(GetParam().text);
  ASSERT_FALSE(specs);
  const std::string text = Describe(specs.error());
  EXPECT_NE(text.find(GetParam().says), std::string::npos) << text;
}

#define SELECTORS(text) R"({"resourceList": [{"resourceName": "net", "selectors": )" text "}]}"

#define ACCELERATOR(text) \
  R"({"resourceList": [{"resourceName": "net", "deviceType": "accelerator", "selectors": )" text "}]}"
#define AUXILIARY(text) \
  R"({"resourceList": [{"resourceName": "net", "deviceType": "auxNetDevice", "selectors": )" text "}]}"

INSTANTIATE_TEST_SUITE_P(
    All, SriovdpConfigRefuses,
    ::testing::Values(
        Wrong{"{", "config.json"}, Wrong{"[]", "not an object"}, Wrong{"{}", "/resourceList"},
        Wrong{R"({"resourceList": []})", "/resourceList is empty"},
        Wrong{R"({"resourceList": [{"selectors": {}}]})", "/resourceList/0/resourceName"},
        Wrong{R"({"resourceList": [{"resourceName": "-", "selectors": {}}]})",
              "/resourceList/0/resourceName"},
        Wrong{R"({"resourceList": [{"resourceName": "a"}]})", "/resourceList/0/selectors"},
        Wrong{
            R"({"resourceList": [{"resourceName": "a", "selectors": {}}, {"resourceName": "a", "selectors": {}}]})",
            "twice"},
        Wrong{R"({"resourceList": [{"resourceName": "a", "ResourceName": "b", "selectors": {}}]})",
              "differing only in case"},
        Wrong{R"({"resourceList": [{"resourceName": "a", "deviceType": "gpu", "selectors": {}}]})",
              "/resourceList/0/deviceType"},
        Wrong{SELECTORS(R"({"vendor": ["15b3"]})"), "vendors"},
        Wrong{SELECTORS(R"({"vendors": ["0x15b3"]})"), "/resourceList/0/selectors/vendors"},
        Wrong{SELECTORS(R"({"vendors": "15b3"})"), "/resourceList/0/selectors/vendors"},
        Wrong{SELECTORS(R"({"pciAddresses": ["43:00.0"]})"), "is not a PCI address"},
        Wrong{SELECTORS(R"({"pfNames": ["pf0#3-1"]})"), "end is below its start"},
        Wrong{SELECTORS(R"({"pfNames": ["pf0#a"]})"), "list of numbers"},
        Wrong{SELECTORS(R"({"pfNames": ["#1"]})"), "names no PF"},
        Wrong{SELECTORS(R"({"rootDevices": ["pf0#1"]})"), "is not a PCI address"},
        Wrong{SELECTORS(R"({"linkTypes": ["fibre"]})"), "ether or infiniband"},
        Wrong{SELECTORS(R"({"VdpaType": "user"})"), "/resourceList/0/selectors/VdpaType: 'user'"},
        Wrong{SELECTORS(R"({"vdpaType": "vhost", "isRdma": true})"), "cannot stand beside isRdma"},
        Wrong{SELECTORS(R"({"acpiIndexes": ["eth"]})"), "is not an ACPI index"},
        Wrong{SELECTORS(R"({"pKeys": ["1"]})"), "is not a partition key"},
        Wrong{SELECTORS(R"({"pKeys": ["0x10000"]})"), "is not a partition key"},
        Wrong{SELECTORS(R"({"needVhostNet": "yes"})"), "/resourceList/0/selectors/needVhostNet"},
        Wrong{SELECTORS(R"({"auxTypes": ["sf"]})"), "auxNetDevice only"},
        Wrong{ACCELERATOR(R"({"pfNames": ["pf0"]})"), "not a selector of deviceType accelerator"},
        Wrong{ACCELERATOR(R"({"auxTypes": ["sf"]})"), "auxNetDevice only"},
        Wrong{ACCELERATOR(R"({"vendor": ["15b3"]})"), "did you mean 'vendors'"},
        Wrong{AUXILIARY(R"({"pfNames": ["pf0"]})"), "/resourceList/0/selectors/auxTypes: is missing"},
        Wrong{AUXILIARY(R"({"auxTypes": ["a.b"]})"), "is not a type of an auxiliary device"},
        Wrong{AUXILIARY(R"({"auxTypes": ["sf"], "pciAddresses": ["0000:43:00.0"]})"),
              "not a selector of deviceType auxNetDevice"},
        Wrong{AUXILIARY(R"({"auxTypes": ["sf"], "vdpaType": "vhost"})"),
              "not a selector of deviceType auxNetDevice"},
        Wrong{SELECTORS(R"([])"), "empty list"},
        Wrong{SELECTORS(R"([{}, {"isRdma": 1}])"), "/resourceList/0/selectors/1/isRdma"}));

constexpr const char* kPath = "/etc/pcidp/config.json";

class ConfigCheckTest : public TwoRails {
 protected:
  Result<NodeSnapshot> PlanFor(const std::string& text) {
    sysfs_.Write(kPath, text);
    const ConfigSource source = RH_TRY(DetectConfig(root_, kPath, "intel.com"));
    return TakeSnapshot(root_, source, {{{"pf0v3", "carries the host's address"}}},
                        resources::DdpOfKernel(root_));
  }
};

TEST_F(ConfigCheckTest, TellsBothKindsApartByTheirKeys) {
  sysfs_.Write(kPath, R"({"RESOURCELIST": []})");
  const auto sriovdp = DetectConfig(root_, kPath, "x.io");
  ASSERT_TRUE(sriovdp);
  EXPECT_EQ(sriovdp->sriovdp, kPath);
  EXPECT_EQ(sriovdp->resource_prefix, "x.io");
  EXPECT_FALSE(sriovdp->fabric);
  sysfs_.Write(kPath, TwoRailFabric());
  const auto fabric = DetectConfig(root_, kPath, "x.io");
  ASSERT_TRUE(fabric);
  EXPECT_EQ(fabric->fabric, kPath);
  EXPECT_FALSE(fabric->sriovdp);
}

TEST_F(ConfigCheckTest, RefusesWhatIsNeither) {
  for (const char* text : {"{}", R"({"configList": []})", "[]", "{", ""}) {
    sysfs_.Write(kPath, text);
    const auto source = DetectConfig(root_, kPath, "intel.com");
    ASSERT_FALSE(source) << text;
    EXPECT_NE(source.error().message.find(kPath), std::string::npos) << source.error().message;
  }
  EXPECT_EQ(DetectConfig(root_, "/nowhere.json", "intel.com").error().code, ErrorCode::kNotFound);
}

TEST_F(ConfigCheckTest, PassesOnTheJsonPointer) {
  const auto plan =
      PlanFor(R"({"resourceList": [{"resourceName": "a", "selectors": {"vendor": ["15b3"]}}]})");
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("/resourceList/0/selectors/vendor"), std::string::npos)
      << plan.error().message;
}

TEST_F(ConfigCheckTest, ANodeWithoutAPolicyAdvertisesNothing) {
  const auto plan = PlanFor(R"({"resourceList": null})");
  ASSERT_TRUE(plan) << Describe(plan.error());
  EXPECT_TRUE(plan->pools.empty());
  EXPECT_TRUE(plan->warnings.empty());
  const auto migration = migrate::MigrateResources(R"({"resourceList": null})", "config.json", "intel.com");
  ASSERT_TRUE(migration) << Describe(migration.error());
  EXPECT_EQ(migration->fabric, "");
}

TEST_F(ConfigCheckTest, NamesTheDevicesOfEachResourceAndWhatTheOthersLack) {
  const auto plan =
      PlanFor(R"({"resourceList": [{"resourceName": "a", "selectors": {"pfNames": ["pf0#2-3"]}}]})");
  ASSERT_TRUE(plan) << Describe(plan.error());
  const std::string text = SnapshotAsText(*plan);
  EXPECT_EQ(
      text.rfind("intel.com/a: 1 device\n  " + vfs0_[2] + "  VF 2 of pf0, pf0_rdma2\nnot given out:\n", 0),
      0U)
      << text;
  EXPECT_NE(text.find("  " + vfs0_[3] + "  carries the host's address (pf0v3)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  " + vfs1_[0] + "  is selected by no resource (intel.com/a: pfNames)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(record::Dump(ToJson(*plan)).find("is selected by no resource (intel.com/a: pfNames)"),
            std::string::npos);
}

// A representor does not count as an interface of the function. ADD refuses a function with two interfaces.
TEST_F(ConfigCheckTest, AFunctionOfSeveralPortsIsNotGivenOut) {
  const auto text = [&] {
    const auto plan =
        PlanFor(R"({"resourceList": [{"resourceName": "a", "selectors": {"pfNames": ["pf0#0-1"]}}]})");
    return plan ? SnapshotAsText(*plan) : Describe(plan.error());
  };
  const std::string net = "/sys/bus/pci/devices/" + vfs0_[1] + "/net/";
  sysfs_.Write(net + "another/phys_port_name", "pf0sf88\n");
  EXPECT_EQ(text().rfind("intel.com/a: 2 devices\n", 0), 0U) << text();
  sysfs_.Write(net + "second/dev_port", "1\n");
  EXPECT_EQ(text().rfind("intel.com/a: 1 device\n  " + vfs0_[0], 0), 0U) << text();
  EXPECT_NE(text().find("  " + vfs0_[1] + "  has several interfaces of its own"), std::string::npos)
      << text();
}

TEST_F(ConfigCheckTest, SaysWhyAnAcceleratorIsNotGivenOutWhereAResourceWantsSome) {
  AddAcceleratorFunction(sysfs_, "0000:b0:00.0", "qat");
  AddAcceleratorFunction(sysfs_, "0000:b1:00.0", "");
  const auto plan =
      PlanFor(R"({"resourceList": [{"resourceName": "a", "deviceType": "accelerator", "selectors": {}}]})");
  ASSERT_TRUE(plan) << Describe(plan.error());
  const std::string text = SnapshotAsText(*plan);
  EXPECT_EQ(text.rfind("intel.com/a: 1 device\n  0000:b0:00.0\nnot given out:\n", 0), 0U) << text;
  EXPECT_NE(text.find("  0000:b1:00.0  is bound to no driver\n"), std::string::npos) << text;
  EXPECT_NE(record::Dump(ToJson(*plan)).find("is bound to no driver"), std::string::npos);

  const auto other = PlanFor(R"({"resourceList": [{"resourceName": "a", "selectors": {}}]})");
  ASSERT_TRUE(other) << Describe(other.error());
  EXPECT_EQ(SnapshotAsText(*other).find("0000:b1:00.0"), std::string::npos)
      << "other plugins' are none of ours";
}

// "/resourceList/0 (intel.com/net): ..."
std::vector<std::string> NotesOf(const migrate::ResourceMigration& migration) {
  std::vector<std::string> notes;
  for (const migrate::ResourceNote& note : migration.notes) {
    notes.push_back("/resourceList/" + std::to_string(note.resource) + " (" +
                    migration.resources.at(note.resource) + "): " + note.text);
  }
  return notes;
}

TEST_F(ConfigCheckTest, MigratesPfsToRails) {
  const auto migration = migrate::MigrateResources(
      R"({"resourceList": [
        {"resourceName": "a", "selectors": {"pfNames": ["pf0#0-1", "pf1"], "vendors": ["15b3"], "isRdma": true}},
        {"resourceName": "b", "selectors": [{"rootDevices": ["0000:C3:00.0"]}, {"pfNames": ["PF0"]}]}]})",
      "config.json", "intel.com");
  ASSERT_TRUE(migration) << Describe(migration.error());
  const auto fabric = ParseFabric(migration->fabric, "fabric.json");
  ASSERT_TRUE(fabric) << Describe(fabric.error()) << migration->fabric;
  ASSERT_EQ(fabric->rails.size(), 3U);
  EXPECT_EQ(fabric->rails[0].pfs, std::vector<std::string>{"pf0"});
  EXPECT_EQ(fabric->rails[1].pfs, std::vector<std::string>{"pf1"});
  EXPECT_EQ(fabric->rails[2].pfs, std::vector<std::string>{"0000:c3:00.0"});
  for (const Rail& rail : fabric->rails) {
    EXPECT_FALSE(rail.subnet || rail.gateway || rail.vlan || rail.mtu) << "nothing is made up";
  }
  ASSERT_EQ(fabric->pools.size(), 2U);
  EXPECT_EQ(fabric->pools[0].resource, "intel.com/a");
  EXPECT_EQ(fabric->pools[0].rails, (std::vector<std::string>{"rail0", "rail1"}));
  EXPECT_EQ(fabric->pools[0].nccl_config, NcclConfigPolicy::kRequired);
  EXPECT_EQ(fabric->pools[1].rails, (std::vector<std::string>{"rail2", "rail0"}));
  EXPECT_EQ(fabric->pools[1].nccl_config, NcclConfigPolicy::kOff);
  std::string notes;
  for (const std::string& note : NotesOf(*migration)) notes += note + "\n";
  for (const char* said : {"/resourceList/0 (intel.com/a): the range of VFs of pf0", "vendors left out",
                           "/resourceList/1 (intel.com/b): rail0 is in the pool intel.com/a"}) {
    EXPECT_NE(notes.find(said), std::string::npos) << said << " in:\n" << notes;
  }
}

struct ExcludedDevice {
  const char* resource;
  const char* because;
};
class MigrateLeavesOut : public ::testing::TestWithParam<ExcludedDevice> {};

TEST_P(MigrateLeavesOut, WithTheReason) {
  const std::string left_out = GetParam().resource;
  const auto nothing =
      migrate::MigrateResources(R"({"resourceList": [)" + left_out + "]}", "config.json", "intel.com");
  ASSERT_TRUE(nothing) << Describe(nothing.error());
  EXPECT_EQ(nothing->fabric, "");
  EXPECT_NE(NotesOf(*nothing).at(0).find(GetParam().because), std::string::npos) << NotesOf(*nothing).at(0);
  const auto others = migrate::MigrateResources(
      R"({"resourceList": [{"resourceName": "ok", "selectors": {"pfNames": ["pf0"]}}, )" + left_out + "]}",
      "config.json", "intel.com");
  ASSERT_TRUE(others) << Describe(others.error());
  EXPECT_EQ(ParseFabric(others->fabric, "fabric.json").value().pools.size(), 1U);
  EXPECT_NE(NotesOf(*others).at(0).find("/resourceList/1 (intel.com/x): left out: "), std::string::npos)
      << NotesOf(*others).at(0);
}

INSTANTIATE_TEST_SUITE_P(
    All, MigrateLeavesOut,
    ::testing::Values(
        ExcludedDevice{R"({"resourceName": "x", "deviceType": "accelerator", "selectors": {}})",
                       "accelerators"},
        ExcludedDevice{
            R"({"resourceName": "x", "deviceType": "auxNetDevice", "selectors": {"auxTypes": ["sf"]}})",
            "subfunctions"},
        ExcludedDevice{R"({"resourceName": "x", "selectors": {"pfNames": ["pf0"], "vdpaType": "vhost"}})",
                       "vDPA"},
        ExcludedDevice{R"({"resourceName": "x", "selectors": {"pfNames": ["pf0"], "needVhostNet": true}})",
                       "vhost-net"},
        ExcludedDevice{R"({"resourceName": "x", "selectors": {"pfNames": ["pf0"], "pKeys": ["0x1"]}})",
                       "partitions"},
        ExcludedDevice{
            R"({"resourceName": "x", "selectors": {"pfNames": ["pf0"], "linkTypes": ["infiniband"]}})",
            "Ethernet"},
        ExcludedDevice{R"({"resourceName": "x", "selectors": {"pfNames": ["pf0"], "drivers": ["vfio-pci"]}})",
                       "user-space"},
        ExcludedDevice{R"({"resourceName": "x", "selectors": {"vendors": ["15b3"]}})", "names its PFs"}));

TEST(Migrate, RefusesNamesThatAFabricCannotHave) {
  const std::string domain = std::string(100, 'a') + "." + std::string(100, 'b');
  const auto migration = migrate::MigrateResources(
      R"({"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["pf0"]}}]})", "config.json",
      domain);
  ASSERT_FALSE(migration);
  EXPECT_EQ(migration.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(migration.error().message.find("/pools/0/resource"), std::string::npos)
      << migration.error().message;
}

TEST(Migrate, RefusesABrokenConfigWithThePointer) {
  const auto migration =
      migrate::MigrateResources(R"({"resourceList": [{"selectors": {}}]})", "config.json", "x.io");
  ASSERT_FALSE(migration);
  EXPECT_NE(migration.error().message.find("/resourceList/0/resourceName"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
