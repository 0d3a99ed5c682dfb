// The parser of fabric.json: what it accepts, and every refusal with its JSON pointer.
#include "cni/fabric/fabric.h"

#include <gtest/gtest.h>

#include "cni/fabric/add_refusals.h"
#include "tests/support/temp_root.h"

namespace railhead {
namespace {

// One rail with `fields`, and `more` at the top.
std::string WithRail(const std::string& fields, const std::string& more = "") {
  return R"({"version":1,"rails":[{"name":"rail0","pf":"pf0")" + (fields.empty() ? "" : "," + fields) + "}]" +
         (more.empty() ? "" : "," + more) + "}";
}

std::string ErrorOf(const std::string& text) {
  const auto fabric = ParseFabric(text, "f");
  return fabric ? "" : Describe(fabric.error());
}

Fabric Read(const std::string& text) {
  auto fabric = ParseFabric(text, "f");
  if (!fabric) {
    ADD_FAILURE() << Describe(fabric.error());
    Fabric empty;
    empty.rails.emplace_back();
    empty.pools.emplace_back();
    return empty;
  }
  return *fabric;
}

TEST(FabricTest, ExpectedSwitchesAreOnePatternOrSeveral) {
  EXPECT_TRUE(Read(WithRail("")).rails[0].expected_switches.empty());
  EXPECT_EQ(Read(WithRail(R"("expectedSwitches":"su*-leaf1")")).rails[0].expected_switches,
            std::vector<std::string>{"su*-leaf1"});
  EXPECT_EQ(Read(WithRail(R"("expectedSwitches":["a","b"])")).rails[0].expected_switches,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(
      ErrorOf(WithRail(R"("expectedSwitches":")" + std::string(256, 'x') + "\"")).find("longer than 255"),
      std::string::npos);
}

TEST(FabricTest, ReadsTheDocumentedExample) {
  const Fabric fabric = Read(R"({
    "version": 1,
    "rails": [{ "name": "rail0", "pf": "pf0", "vlan": 100, "vlanQoS": 3, "mtu": 1500,
      "subnet": "10.100.0.0/24", "gateway": "10.100.0.254", "routes": ["10.0.0.0/8"],
      "exclude": ["10.100.0.200-10.100.0.210", "10.100.0.3", "10.100.0.64/28"],
      "nodeRanges": { "node0": "10.100.0.10-10.100.0.99", "1": "10.100.0.110-10.100.0.199" },
      "trafficClass": 106, "softRoce": false, "table": 100 }],
    "nodes": { "node0": 0, "node1": 1 },
    "addresses": { "reuseDelaySeconds": 60 },
    "ncclConfig": { "mode": "required", "env": { "NCCL_DEBUG": "INFO" } },
    "pools": [{ "resource": "railhead.io/roce", "rails": ["rail0"], "device": "vf",
                "ncclConfig": "off", "deviceNodes": "mount" }] })");
  ASSERT_EQ(fabric.rails.size(), 1U);
  const Rail& rail = fabric.rails[0];
  EXPECT_EQ(rail.pfs, std::vector<std::string>{"pf0"});
  EXPECT_EQ(rail.vlan, 100);
  EXPECT_EQ(rail.vlan_qos, 3);
  EXPECT_EQ(rail.exclude.size(), 3U);
  EXPECT_EQ(rail.exclude[2].ToString(), "10.100.0.64-10.100.0.79");
  EXPECT_EQ(rail.traffic_class, 106);
  EXPECT_EQ(fabric.reuse_delay_seconds, 60);
  EXPECT_EQ(fabric.nccl_config_options.Lines().at(0).second, "INFO");
  EXPECT_EQ(fabric.pools.at(0).device, PoolDevice::kVf);
  EXPECT_EQ(fabric.pools[0].nccl_config, NcclConfigPolicy::kOff);
  EXPECT_EQ(fabric.pools[0].device_nodes, DeviceNodeMode::kMount);
}

TEST(FabricTest, Defaults) {
  const Fabric fabric =
      Read(R"({"version":1,"rails":[{"name":"a","pf":0},{"name":"b","pf":["x","0000:43:00.0"]}]})");
  EXPECT_EQ(fabric.rails[0].table, 100U);
  EXPECT_EQ(fabric.rails[1].table, 101U);
  EXPECT_EQ(fabric.rails[0].vlan, std::nullopt) << "absent is not 0: the VLAN is left alone";
  EXPECT_EQ(fabric.reuse_delay_seconds, 600);
  ASSERT_EQ(fabric.pools.size(), 1U);
  EXPECT_EQ(fabric.pools[0].resource, "railhead.io/roce");
  EXPECT_EQ(fabric.pools[0].rails, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fabric.pools[0].nccl_config, NcclConfigPolicy::kRequired);
  EXPECT_EQ(fabric.pools[0].device_nodes, DeviceNodeMode::kCdi);
  EXPECT_EQ(Read(WithRail("", R"("ncclConfig":{"mode":"off"})")).pools[0].nccl_config,
            NcclConfigPolicy::kOff);
}

TEST(FabricTest, LinesOfTheNcclConfigInTheFieldsOrderThenTheFiles) {
  using Lines = std::vector<std::pair<std::string, std::string>>;
  const Fabric fabric = Read(WithRail(R"("serviceLevel":5)", R"("ncclConfig":{"env":{"NCCL_DEBUG":"INFO"},
      "nccl":{"gdrLevel":"PXB","crossNic":0,"timeout":22,"adaptiveRouting":true,"splitDataOnQps":false}})"));
  EXPECT_EQ(fabric.rails[0].service_level, 5);
  EXPECT_EQ(fabric.nccl_config_options.Lines(), (Lines{{"NCCL_IB_TIMEOUT", "22"},
                                                       {"NCCL_CROSS_NIC", "0"},
                                                       {"NCCL_IB_SPLIT_DATA_ON_QPS", "0"},
                                                       {"NCCL_IB_ADAPTIVE_ROUTING", "1"},
                                                       {"NCCL_NET_GDR_LEVEL", "PXB"},
                                                       {"NCCL_DEBUG", "INFO"}}));
}

TEST(FabricTest, StacksBesideNccl) {
  using Stacks = std::set<CommunicationStack>;
  EXPECT_EQ(Read(WithRail("", "")).nccl_config_options.stacks, Stacks{CommunicationStack::kRccl});
  EXPECT_EQ(Read(WithRail("", R"("ncclConfig":{"stacks":[]})")).nccl_config_options.stacks, Stacks{});
  EXPECT_EQ(Read(WithRail("", R"("ncclConfig":{"stacks":["ucx","nvshmem","gloo","openmpi","rccl"]})"))
                .nccl_config_options.stacks.size(),
            5U);
  EXPECT_EQ(ErrorOf(WithRail("", R"("ncclConfig":{"stacks":["ucx","nccl"]})")),
            "f: /ncclConfig/stacks/1: 'nccl' is not known; rccl, ucx, nvshmem, gloo or openmpi");
}

struct Refusal {
  const char* text;
  const char* error;
};

class RailRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RailRefusalTest, NamesTheField) {
  EXPECT_EQ(ErrorOf(WithRail(GetParam().text)).rfind(std::string("f: /rails/0") + GetParam().error, 0), 0U)
      << ErrorOf(WithRail(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, RailRefusalTest,
    ::testing::Values(
        Refusal{R"("vlan":4095)", "/vlan: 4095 is out of range 0..4094"},
        Refusal{R"("vlan":-1)", "/vlan: -1 is out of range"},
        Refusal{R"("vlan":"100")", "/vlan: is not an integer"},
        Refusal{R"("vlan":10,"vlanQoS":8)", "/vlanQoS: 8 is out of range 0..7"},
        Refusal{R"("vlanQoS":1)", "/vlanQoS: needs a vlan other than 0"},
        Refusal{R"("vlan":0,"vlanQoS":1)", "/vlanQoS: needs a vlan"},
        Refusal{R"("mtu":67)", "/mtu: 67 is out of range"},
        Refusal{R"("mtu":65536)", "/mtu: 65536 is out of range"},
        Refusal{R"("subnet":"10.0.0.0")", "/subnet: '10.0.0.0' is not an address with prefix length"},
        Refusal{R"("subnet":"10.0.0.1/24")", "/subnet: '10.0.0.1/24' has host bits set; write 10.0.0.0/24"},
        Refusal{R"("gateway":"10.0.0.1")", "/gateway: needs a subnet"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"10.0.1.1")", "/gateway: 10.0.1.1 is outside the subnet"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"x")", "/gateway: 'x' is neither an IP address nor"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"other")",
                "/gateway: 'other' is in no network of length /24"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"other","nodeSubnet":26)",
                "/gateway: 'other' is in no network of length /26; 'other' is of a /31"},
        Refusal{R"("subnet":"10.0.0.0/32","gateway":"first")",
                "/gateway: 'first' is in no network of length"},
        Refusal{R"("gateway":"first")", "/gateway: needs a subnet"},
        Refusal{R"("nodeSubnet":31)", "/subnet: is required with nodeRanges, nodeBlock or nodeSubnet"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeSubnet":32)", "/nodeSubnet: 32 does not divide 10.0.0.0/24"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeSubnet":23)", "/nodeSubnet: 23 does not divide"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeSubnet":31,"nodeBlock":31)",
                "/nodeSubnet: cannot stand beside nodeBlock"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeSubnet":26,"nodeRanges":{"n":"10.0.0.1-10.0.0.9"})",
                "/nodeSubnet: cannot stand beside nodeRanges"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeSubnet":26,"probeAddresses":"10.0.0.1-10.0.0.9")",
                "/probeAddresses: a range cannot stand beside nodeSubnet"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"last","probeAddresses":{"n":"10.0.0.254"})",
                "/probeAddresses/n: 10.0.0.254 is the gateway"},
        Refusal{
            R"("subnet":"10.0.0.0/24","gateway":"first","nodeSubnet":26,"probeAddresses":{"n":"10.0.0.65"})",
            "/probeAddresses/n: 10.0.0.65 is the gateway"},
        Refusal{R"("subnet":"10.0.0.0/24","probeAddresses":"last")",
                "/probeAddresses: is of a node's own addresses, and nothing divides the subnet"},
        Refusal{R"("subnet":"10.0.0.0/24","routes":"rails")", "/routes: needs a gateway"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"fd00::1")", "/gateway: fd00::1 is outside"},
        Refusal{R"("subnet":"10.0.0.0/24","routes":["10.0.0.0/8"])", "/routes: needs a gateway"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"10.0.0.1","routes":["10.1.0.0"])",
                "/routes/0: '10.1.0.0' is no"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"10.0.0.1","routes":["10.0.0.1/8"])",
                "/routes/0: '10.0.0.1/8'"},
        Refusal{R"("subnet":"10.0.0.0/24","gateway":"10.0.0.1","routes":["fd00::/8"])",
                "/routes/0: 'fd00::/8' is not of the subnet's address family"},
        Refusal{R"("routes":"10.0.0.0/8")", "/routes: is neither a list nor 'rails'"},
        Refusal{R"("subnet":"10.0.0.0/24","exclude":["10.0.0.9-10.0.0.1"])",
                "/exclude/0: '10.0.0.9-10.0.0.1'"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeRanges":{"n":"10.0.1.1-10.0.1.2"})",
                "/nodeRanges/n: 10.0.1.1-"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeRanges":{"n":"x"})",
                "/nodeRanges/n: 'x' is not an address, range or prefix"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeRanges":{"n":7})", "/nodeRanges/n: is neither a string"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeRanges":{"a":"10.0.0.1-10.0.0.9","b":"10.0.0.9-10.0.0.20"})",
                "/nodeRanges/b: 10.0.0.9-10.0.0.20 overlaps 10.0.0.1-10.0.0.9 of node 'a'"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeRanges":{"a":["10.0.0.1-10.0.0.9","10.0.0.9-10.0.0.20"]})",
                "/nodeRanges/a: 10.0.0.9-10.0.0.20 overlaps 10.0.0.1-10.0.0.9 of node 'a'"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeRanges":{"a":[]})", "/nodeRanges/a: must not be empty"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeRanges":{"a":["10.0.0.1",7]})",
                "/nodeRanges/a/1: is not a string"},
        Refusal{R"("nodeBlock":26)", "/subnet: is required with nodeRanges, nodeBlock or nodeSubnet"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeBlock":23)", "/nodeBlock: 23 does not divide"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeBlock":33)", "/nodeBlock: 33 does not divide"},
        Refusal{R"("subnet":"10.0.0.0/24","nodeBlock":26,"nodeRanges":{"n":"10.0.0.1-10.0.0.9"})",
                "/nodeBlock: cannot stand beside nodeRanges"},
        Refusal{R"("trafficClass":256)", "/trafficClass: 256 is out of range"},
        Refusal{R"("softRoce":"yes")", "/softRoce: is not true or false"},
        Refusal{R"("spoofchk":"on")", "/spoofchk: is not true or false"},
        Refusal{R"("expectedSwitches":"")", "/expectedSwitches: must not be empty"},
        Refusal{R"("expectedSwitches":[])", "/expectedSwitches: must not be empty"},
        Refusal{R"("expectedSwitches":["a",""])", "/expectedSwitches: must not be empty"},
        Refusal{R"("expectedSwitches":7)", "/expectedSwitches: is neither a string"},
        Refusal{R"("table":0)", "/table: 0 is out of range"},
        Refusal{R"("table":254)", "/table: 253, 254 and 255"},
        Refusal{R"("dscp":46)",
                "/dscp: unknown field; DSCP 46 of a rail is \"trafficClass\": 184, or 186 with"},
        Refusal{R"("dscp":64)",
                "/dscp: unknown field; DSCP 26 of a rail is \"trafficClass\": 104, or 106 with"},
        Refusal{R"("dscp":"af31")", "/dscp: unknown field; DSCP 26 of a rail is \"trafficClass\": 104"},
        Refusal{R"("dscp":null)", "/dscp: unknown field; DSCP 26 of a rail is \"trafficClass\": 104"},
        Refusal{R"("vlna":1)", "/vlna: unknown field; did you mean 'vlan'?"}));

class FabricRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(FabricRefusalTest, NamesTheField) {
  EXPECT_EQ(ErrorOf(GetParam().text).rfind(std::string("f: ") + GetParam().error, 0), 0U)
      << ErrorOf(GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Documents, FabricRefusalTest,
    ::testing::Values(
        Refusal{"", "no valid JSON"}, Refusal{"[]", "/: is not an object"},
        Refusal{R"({"rails":[{"name":"a","pf":"p"}]})", "/version: is required"},
        Refusal{R"({"version":2,"rails":[{"name":"a","pf":"p"}]})", "/version: 2 is out of range"},
        Refusal{R"({"version":1})", "/rails: is required; name at least one rail"},
        Refusal{R"({"version":1,"rails":{}})", "/rails: is not a list of objects"},
        Refusal{R"({"version":1,"rails":[{"pf":"p"}]})", "/rails/0/name: is required"},
        Refusal{R"({"version":1,"rails":[{"name":"a"}]})", "/rails/0/pf: is required"},
        Refusal{R"({"version":1,"rails":[{"name":"a","pf":""}]})", "/rails/0/pf: must not be empty"},
        Refusal{R"({"version":1,"rails":[{"name":"a","pf":[]}]})", "/rails/0/pf: must not be empty"},
        Refusal{R"({"version":1,"rails":[{"name":"a","pf":-1}]})", "/rails/0/pf: -1 is out of range"},
        Refusal{R"({"version":1,"rails":[{"name":"a","pf":"p"},{"name":"a","pf":"q"}]})",
                "/rails/1/name: another rail is called 'a'"},
        Refusal{R"({"version":1,"rails":[{"name":"a","pf":"p"},{"name":"b","pf":"q","table":100}]})",
                "/rails/1/table: rail 'a' has table 100"},
        Refusal{R"({"version":1,"rails":[{"name":"a","pf":"p","vlan":1,"vlan":2}]})",
                "/rails/0/vlan: is there twice"},
        Refusal{R"({"version":1,"nodes":{"n":-1},"rails":[{"name":"a","pf":"p"}]})",
                "/nodes/n: -1 is out of range"},
        Refusal{R"({"version":1,"nodes":{"n":1,"m":1},"rails":[{"name":"a","pf":"p"}]})",
                "/nodes/n: another node has index 1"},
        Refusal{R"({"version":1,"nodes":{"n":1},"rails":[{"name":"a","pf":"p","subnet":"10.0.0.0/24",
                "nodeRanges":{"n":"10.0.0.1-10.0.0.2","1":"10.0.0.3-10.0.0.4"}}]})",
                "/rails/0/nodeRanges: node 'n' has a range by name and one by its index"},
        Refusal{R"({"version":1,"addresses":{"reuseDelaySeconds":-1},"rails":[{"name":"a","pf":"p"}]})",
                "/addresses/reuseDelaySeconds: -1"},
        Refusal{R"({"version":1,"addresses":{"reuse":1},"rails":[{"name":"a","pf":"p"}]})",
                "/addresses/reuse: unknown"},
        Refusal{R"({"version":1,"ncclConfig":{"mode":"maybe"},"rails":[{"name":"a","pf":"p"}]})",
                "/ncclConfig/mode: 'maybe' is not known; required or off"},
        Refusal{R"({"version":1,"ncclConfig":{"topology":"auto"},"rails":[{"name":"a","pf":"p"}]})",
                "/ncclConfig/topology: 'auto' is not known; never, needed or always"},
        Refusal{R"({"version":1,"ncclConfig":{"nccl":{"timeout":32}},"rails":[{"name":"a","pf":"p"}]})",
                "/ncclConfig/nccl/timeout: "},
        Refusal{R"({"version":1,"ncclConfig":{"nccl":{"gdrLevel":"pix"}},"rails":[{"name":"a","pf":"p"}]})",
                "/ncclConfig/nccl/gdrLevel: 'pix' is not known; LOC, PIX"},
        Refusal{R"({"version":1,"ncclConfig":{"nccl":{"crosNic":0}},"rails":[{"name":"a","pf":"p"}]})",
                "/ncclConfig/nccl/crosNic: unknown field; did you mean 'crossNic'?"},
        Refusal{R"({"version":1,"ncclConfig":{"nccl":{"crossNic":0},"env":{"NCCL_CROSS_NIC":"1"}},
                    "rails":[{"name":"a","pf":"p"}]})",
                "/ncclConfig/env/NCCL_CROSS_NIC: is also set by a field of ncclConfig.nccl"},
        Refusal{
            R"({"version":1,"ncclConfig":{"env":{"NCCL_IB_GID_INDEX":"3"}},"rails":[{"name":"a","pf":"p"}]})",
            "/ncclConfig/env/NCCL_IB_GID_INDEX: differs between pods"},
        Refusal{R"({"version":1,"rails":[{"name":"a","pf":"p","serviceLevel":16}]})",
                "/rails/0/serviceLevel: "},
        Refusal{R"({"version":1,"ncclConfig":{"env":{"A B":"x"}},"rails":[{"name":"a","pf":"p"}]})",
                "/ncclConfig/env/A B: is not a variable name"},
        Refusal{R"({"version":1,"ncclConfig":{"env":{"A":"x\ny"}},"rails":[{"name":"a","pf":"p"}]})",
                "/ncclConfig/env/A: must be one line"},
        Refusal{R"({"version":1,"pools":[{"rails":["a"]}],"rails":[{"name":"a","pf":"p"}]})",
                "/pools/0/resource: is required"},
        Refusal{R"({"version":1,"pools":[{"resource":"roce"}],"rails":[{"name":"a","pf":"p"}]})",
                "/pools/0/resource: 'roce' is not an extended resource name"},
        Refusal{R"({"version":1,"pools":[{"resource":"kubernetes.io/x"}],"rails":[{"name":"a","pf":"p"}]})",
                "/pools/0/resource: 'kubernetes.io/x'"},
        Refusal{R"({"version":1,"pools":[{"resource":"x/y","rails":["b"]}],"rails":[{"name":"a","pf":"p"}]})",
                "/pools/0/rails: fabric.json has no rail 'b'"},
        Refusal{R"({"version":1,"pools":[{"resource":"x/y","rails":[]}],"rails":[{"name":"a","pf":"p"}]})",
                "/pools/0/rails: must not be empty"},
        Refusal{R"({"version":1,"pools":[{"resource":"x/y","device":"sf"}],"rails":[{"name":"a","pf":"p"}]})",
                "/pools/0/device: 'sf' is not known"},
        Refusal{R"({"version":1,"pools":[{"resource":"x/y","deviceNodes":"mount"}],
                "rails":[{"name":"a","pf":"p","softRoce":true}]})",
                "/pools/0/deviceNodes: 'mount' cannot serve the soft RoCE rail 'a'"},
        Refusal{
            R"({"version":1,"pools":[{"resource":"x/y"},{"resource":"x/y"}],"rails":[{"name":"a","pf":"p"}]})",
            "/pools/1/resource: another pool is called 'x/y'"},
        Refusal{R"({"version":1,"rail":[],"rails":[{"name":"a","pf":"p"}]})",
                "/rail: unknown field; did you mean 'rails'?"},
        Refusal{R"({"version":1,"dscp":26,"rails":[{"name":"a","pf":"p"}]})",
                "/dscp: unknown field; DSCP 26 of a rail is \"trafficClass\": 104, or 106 with ECN"},
        Refusal{R"({"version":1,"rails":[{"name":"a","pf":"p"},{"name":"b","pf":"q","dscp":0}]})",
                "/rails/1/dscp: unknown field; DSCP 0 of a rail is \"trafficClass\": 0, or 2 with ECN"},
        Refusal{R"({"version":1,"rails":[7,{"name":"b","pf":"q"}]})", "/rails/0: is not an object"}));

// Nothing gives a PF a VLAN: a pool of PFs and a rail with a VLAN exclude each other.
TEST(FabricTest, APoolOfPfsHasNoRailWithAVlan) {
  for (const char* device : {"", R"(,"device":"vf")", R"(,"device":"pf")"}) {
    for (const int vlan : {-1, 0, 1, 100, 4094}) {
      for (const char* rails : {"", R"(,"rails":["a"])", R"(,"rails":["b","a"])", R"(,"rails":["b"])"}) {
        const std::string of_rail = vlan < 0 ? "" : R"(,"vlan":)" + std::to_string(vlan);
        const std::string text = R"({"version":1,"rails":[{"name":"a","pf":"p")" + of_rail +
                                 R"(},{"name":"b","pf":"q"}],"pools":[{"resource":"x/y")" + rails + device +
                                 "}]}";
        const bool wrong = std::string_view(device).ends_with("\"pf\"") && vlan > 0 &&
                           std::string_view(rails) != R"(,"rails":["b"])";
        const auto fabric = ParseFabric(text, "fabric.json");
        EXPECT_EQ(fabric.has_value(), !wrong) << text;
        if (fabric) continue;
        EXPECT_NE(fabric.error().message.find("/pools/0/device: 'pf' cannot serve rail 'a'"),
                  std::string::npos)
            << fabric.error().message;
      }
    }
  }
}

std::string Shares(const std::vector<IpRange>& ranges) {
  std::string text;
  for (const IpRange& range : ranges) text += (text.empty() ? "" : ", ") + range.ToString();
  return text;
}

TEST(FabricTest, RangesByNameIndexAndBlock) {
  const Rail rail = Read(WithRail(R"("subnet":"10.0.0.0/24","nodeRanges":{"n":"10.0.0.10-10.0.0.19",
                                     "7":"10.0.0.20-10.0.0.29"})"))
                        .rails.at(0);
  EXPECT_EQ(Shares(rail.RangesOf("n", std::nullopt)), "10.0.0.10-10.0.0.19");
  EXPECT_EQ(Shares(rail.RangesOf("n", 3)), "10.0.0.10-10.0.0.19") << "the name comes first";
  EXPECT_EQ(Shares(rail.RangesOf("m", 7)), "10.0.0.20-10.0.0.29");
  EXPECT_EQ(Shares(rail.RangesOf("m", 6)), "");
  const Rail blocks = Read(WithRail(R"("subnet":"10.0.0.0/24","nodeBlock":26)")).rails.at(0);
  EXPECT_EQ(Shares(blocks.RangesOf("m", 0)), "10.0.0.0-10.0.0.63");
  EXPECT_EQ(Shares(blocks.RangesOf("m", 3)), "10.0.0.192-10.0.0.255");
  EXPECT_EQ(Shares(blocks.RangesOf("m", 4)), "") << "the subnet has four blocks";
  EXPECT_EQ(Shares(blocks.RangesOf("m", std::nullopt)), "");
}

TEST(FabricTest, AnIndexBeyondTheBlocksIsNamedWithTheirNumber) {
  for (int length = 24; length <= 32; ++length) {
    const Fabric fabric = Read(
        WithRail(R"("subnet":"10.0.0.0/24","nodeBlock":)" + std::to_string(length), R"("nodes":{"m":1})"));
    const Rail& rail = fabric.rails[0];
    const int blocks = 1 << (length - 24);
    EXPECT_FALSE(rail.RangesOf("m", blocks - 1).empty());
    ASSERT_TRUE(rail.RangesOf("m", blocks).empty());
    EXPECT_EQ(WhyNoRange(fabric, rail, "m", blocks).message, "index " + std::to_string(blocks) +
                                                                 " is beyond the " + std::to_string(blocks) +
                                                                 " blocks of 10.0.0.0/24");
  }
}

TEST(FabricTest, BlocksDoNotWrapAround) {
  const Rail top = Read(WithRail(R"("subnet":"255.255.255.0/24","nodeBlock":26)")).rails[0];
  EXPECT_EQ(Shares(top.RangesOf("m", 3)), "255.255.255.192-255.255.255.255");
  EXPECT_EQ(Shares(top.RangesOf("m", 4)), "");
  const Rail all = Read(WithRail(R"("subnet":"0.0.0.0/0","nodeBlock":8)")).rails[0];
  EXPECT_EQ(Shares(all.RangesOf("m", 255)), "255.0.0.0-255.255.255.255");
  EXPECT_EQ(Shares(all.RangesOf("m", 256)), "") << "not node 0's block again";
  const Rail v6 = Read(WithRail(R"("subnet":"fd00::/64","nodeBlock":96)")).rails[0];
  EXPECT_EQ(v6.RangesOf("m", 1).at(0).first.ToString(), "fd00::1:0:0");
  const Rail wide = Read(WithRail(R"("subnet":"fd00::/48","nodeBlock":64)")).rails[0];
  EXPECT_EQ(wide.RangesOf("m", 0).at(0).first.ToString(), "fd00::");
  EXPECT_EQ(Shares(wide.RangesOf("m", 258)), "fd00:0:0:102::-fd00::102:ffff:ffff:ffff:ffff");
  EXPECT_EQ(Shares(wide.RangesOf("m", 65536)), "");
  const Rail whole = Read(WithRail(R"("subnet":"fd00::/64","nodeBlock":64)")).rails[0];
  EXPECT_EQ(whole.RangesOf("m", 0).at(0).first.ToString(), "fd00::");
  EXPECT_EQ(Shares(whole.RangesOf("m", 1)), "");
}

TEST(FabricTest, AddressPolicy) {
  const auto with = [](const std::string& addresses) {
    return ParseFabric(
        R"({"version":1,"rails":[{"name":"rail0","pf":"p","subnet":"10.0.0.0/24"}],"addresses":)" +
            addresses + "}",
        "fabric.json");
  };
  EXPECT_EQ(with("{}")->address_policy, AddressPolicy::kIncrement);
  EXPECT_EQ(with("{}")->reuse_delay_seconds, 600);
  EXPECT_EQ(with("{}")->min_reuse_delay_seconds, 60);
  const auto fixed = with(R"({"policy": "deterministic"})");
  EXPECT_EQ(fixed->address_policy, AddressPolicy::kDeterministic);
  EXPECT_EQ(fixed->reuse_delay_seconds, 0) << "nothing to be forgotten";
  EXPECT_EQ(with(R"({"policy": "deterministic", "reuseDelaySeconds": 5, "minReuseDelaySeconds": 2})")
                ->reuse_delay_seconds,
            5);
  const auto unknown = with(R"({"policy": "random"})");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("/addresses/policy: 'random' is not known"), std::string::npos);
}

TEST(FabricTest, WhereIndicesComeFrom) {
  const auto with = [](const std::string& addresses) {
    return ParseFabric(
        R"({"version":1,"rails":[{"name":"r","pf":"p","subnet":"10.0.0.0/24","nodeBlock":26}],"addresses":)" +
            addresses + "}",
        "fabric.json");
  };
  for (const char* nodes : {"{}", R"({"index": {}})", R"({"index": {"from": "nodes"}})"}) {
    const auto fabric = with(nodes);
    ASSERT_TRUE(fabric) << Describe(fabric.error());
    EXPECT_FALSE(fabric->index_from_kubernetes) << nodes;
    EXPECT_FALSE(fabric->ClaimsIndices()) << nodes;
  }
  const auto claims = with(R"({"index": {"from": "kubernetes", "fenceSeconds": 900}})");
  ASSERT_TRUE(claims) << Describe(claims.error());
  EXPECT_TRUE(claims->index_from_kubernetes);
  EXPECT_TRUE(claims->ClaimsIndices());
  EXPECT_NE(claims->address_index.find("900"), std::string::npos) << claims->address_index;
  const auto unknown = with(R"({"index": {"from": "etcd"}})");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("/addresses/index/from: 'etcd' is not known"), std::string::npos)
      << unknown.error().message;
}

// Nodes with earlier versions have leased blocks by it.
TEST(FabricTest, TheStoreOfEarlierVersionsIsRefusedWithTheWayOut) {
  const auto fabric = ParseFabric(
      R"({"version":1,"rails":[{"name":"r","pf":"p","subnet":"10.0.0.0/24"}],
          "addresses":{"store":{"type":"kubernetes","blockSize":64}}})",
      "fabric.json");
  ASSERT_FALSE(fabric);
  EXPECT_NE(fabric.error().message.find("/addresses/store"), std::string::npos) << fabric.error().message;
  const std::string all = Describe(fabric.error());
  for (const char* word : {"nodeBlock", R"("index": {"from")", "nodes"})
    EXPECT_NE(all.find(word), std::string::npos) << all;
}

TEST(FabricTest, SeveralRangesOfANode) {
  const Rail rail = Read(WithRail(R"("subnet":"10.0.0.0/24","nodeRanges":{
                                     "n":["10.0.0.30-10.0.0.39","10.0.0.10-10.0.0.19","10.0.0.50"]})"))
                        .rails.at(0);
  EXPECT_EQ(Shares(rail.RangesOf("n", std::nullopt)), "10.0.0.30-10.0.0.39, 10.0.0.10-10.0.0.19, 10.0.0.50");
}

TEST(FabricTest, RailOfPf) {
  const Fabric fabric = Read(R"({"version":1,"rails":[{"name":"by-name","pf":"pf0"},
      {"name":"by-address","pf":"0000:AF:00.0"},{"name":"by-position","pf":2},
      {"name":"list","pf":["ens1","0000:c3:00.0"]}]})");
  const std::vector<std::string> order{"0000:43:00.0", "0000:af:00.0", "0000:b0:00.0", "0000:c3:00.0"};
  const auto name = [&](const std::string& pf, const std::string& bdf) {
    const Rail* rail = fabric.RailOfPf(pf, bdf, order);
    return rail == nullptr ? "none" : rail->name;
  };
  EXPECT_EQ(name("pf0", "0000:43:00.0"), "by-name");
  EXPECT_EQ(name("x", "0000:af:00.0"), "by-address") << "addresses are written in either case";
  EXPECT_EQ(name("x", "0000:b0:00.0"), "by-position");
  EXPECT_EQ(name("y", "0000:c3:00.0"), "list");
  EXPECT_EQ(name("z", "0000:d0:00.0"), "none");
  EXPECT_EQ(name("", "0000:43:00.0"), "none") << "a PF without netdev has no name that could match";
}

TEST(FabricTest, ReadsBelowTheRoot) {
  const testing::TempRoot temp;
  EXPECT_EQ(ReadFabric(temp.root())->has_value(), false);
  temp.Write(kFabricPath, WithRail(""));
  ASSERT_TRUE(ReadFabric(temp.root())->has_value());
  temp.Write("/other.json", "{");
  const auto broken = ReadFabric(temp.root(), "/other.json");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message.rfind("/other.json: no valid JSON", 0), 0U) << broken.error().message;
}

}  // namespace
}  // namespace railhead
