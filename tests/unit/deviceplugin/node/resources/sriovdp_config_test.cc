#include "deviceplugin/node/resources/sriovdp_config.h"

#include "tests/support/daemon/two_rails.h"

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
    return IdsOf(*BuildPools(*specs, *Look()).front());
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
  EXPECT_EQ(first.handoff, HandoffPolicy::kOff);
  EXPECT_EQ(first.delivery, Delivery::kMount);
  EXPECT_EQ(first.rdma_nodes, resources::RdmaNodes::kAll);
  EXPECT_EQ(first.additional_info.at("0000:43:02.0").at("token"), "b");
  const resources::ResourceSpec& second = (*specs)[1];
  EXPECT_EQ(second.resource, "intel.com/second");
  EXPECT_EQ(second.rdma_nodes, resources::RdmaNodes::kNone);
  EXPECT_EQ(second.selectors.size(), 2U);
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
  const auto pools = BuildPools(*specs, *Look());
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
        Wrong{SELECTORS(R"({"pciAddresses": ["43:00.0"]})"), "no PCI address"},
        Wrong{SELECTORS(R"({"pfNames": ["pf0#3-1"]})"), "end is below its start"},
        Wrong{SELECTORS(R"({"pfNames": ["pf0#a"]})"), "list of numbers"},
        Wrong{SELECTORS(R"({"pfNames": ["#1"]})"), "names no PF"},
        Wrong{SELECTORS(R"({"rootDevices": ["pf0#1"]})"), "no PCI address"},
        Wrong{SELECTORS(R"({"linkTypes": ["fibre"]})"), "ether or infiniband"},
        Wrong{SELECTORS(R"({"VdpaType": "user"})"), "/resourceList/0/selectors/VdpaType: 'user'"},
        Wrong{SELECTORS(R"({"vdpaType": "vhost", "isRdma": true})"), "cannot stand beside isRdma"},
        Wrong{SELECTORS(R"({"acpiIndexes": ["eth"]})"), "no ACPI index"},
        Wrong{SELECTORS(R"({"pKeys": ["1"]})"), "no partition key"},
        Wrong{SELECTORS(R"({"pKeys": ["0x10000"]})"), "no partition key"},
        Wrong{SELECTORS(R"({"needVhostNet": "yes"})"), "/resourceList/0/selectors/needVhostNet"},
        Wrong{SELECTORS(R"({"auxTypes": ["sf"]})"), "auxNetDevice only"},
        Wrong{ACCELERATOR(R"({"pfNames": ["pf0"]})"), "no selector of deviceType accelerator"},
        Wrong{ACCELERATOR(R"({"auxTypes": ["sf"]})"), "auxNetDevice only"},
        Wrong{ACCELERATOR(R"({"vendor": ["15b3"]})"), "did you mean 'vendors'"},
        Wrong{AUXILIARY(R"({"pfNames": ["pf0"]})"), "/resourceList/0/selectors/auxTypes: is missing"},
        Wrong{AUXILIARY(R"({"auxTypes": ["a.b"]})"), "no type of an auxiliary device"},
        Wrong{AUXILIARY(R"({"auxTypes": ["sf"], "pciAddresses": ["0000:43:00.0"]})"),
              "no selector of deviceType auxNetDevice"},
        Wrong{AUXILIARY(R"({"auxTypes": ["sf"], "vdpaType": "vhost"})"),
              "no selector of deviceType auxNetDevice"},
        Wrong{SELECTORS(R"([])"), "empty list"},
        Wrong{SELECTORS(R"([{}, {"isRdma": 1}])"), "/resourceList/0/selectors/1/isRdma"}));

}  // namespace
}  // namespace railhead::testing
