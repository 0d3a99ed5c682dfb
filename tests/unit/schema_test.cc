// The JSON schemas of fabric.json, network configurations and topology.json against the parsers: whatever a
// schema refuses, the parser refuses. What only the parser refuses is one of the rules that are listed here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "cni/attachment/plugin_config.h"
#include "cni/fabric/fabric_shape.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "deviceplugin/tools/railctl/config_sections.h"
#include "ipam/plugin/fields.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

using Json = nlohmann::json;

struct Subject {
  const char* name;
  std::function<Result<void>(const std::string&)> parse;
  std::vector<std::string> documents;
  // "POINTER: WHY" of what only the parser refuses.
  std::vector<const char*> rules;
};

Result<void> ParseNetwork(const std::string& text) {
  CniRequest request;
  request.config = text;
  const auto config = RH_TRY(attachment::ReadPluginConfig(request));
  if (config.ipam_type == kOwnIpam) RH_TRY(ipam::ReadIpamFields(text, {}));
  return {};
}

Result<void> ParseTopology(const std::string& text) {
  RH_TRY(topology::ParseTopologyConfig(text, "t"));
  return {};
}

Result<void> ParseWholeFabric(const std::string& text) {
  const auto errors = fabric_follow::ErrorsInFabric(text, "f");
  if (!errors.empty()) return Fail(errors.front());
  return {};
}

constexpr const char* kFabric = R"({
  "version": 1, "nodes": {"node0": 0, "node1": 1},
  "rails": [
    {"name": "rail0", "pf": "pf0", "vlan": 100, "vlanQoS": 3, "mtu": 1500, "subnet": "10.100.0.0/24",
     "gateway": "10.100.0.254", "routes": ["10.0.0.0/8"], "exclude": ["10.100.0.3", "10.100.0.64/28"],
     "nodeRanges": {"node0": "10.100.0.10-10.100.0.19", "1": ["10.100.0.20-10.100.0.29"]},
     "probeAddresses": {"node0": "10.100.0.1"}, "trafficClass": 106, "serviceLevel": 3, "softRoce": false, "spoofchk": false,
     "expectedSwitches": ["leaf-*"], "table": 100},
    {"name": "rail1", "pf": ["pf1", "0000:43:00.1"], "subnet": "10.101.0.0/24", "nodeBlock": 26,
     "probeAddresses": "10.101.0.240-10.101.0.250", "expectedSwitches": "x"},
    {"name": "rail2", "pf": 2}],
  "addresses": {"policy": "increment", "reuseDelaySeconds": 60, "minReuseDelaySeconds": 5, "conflictProbeMs": 100,
                "index": {"from": "nodes"}},
  "rdmaMode": "shared",
  "ncclConfig": {"mode": "required", "topology": "needed", "stacks": ["ucx"],
              "nccl": {"timeout": 22, "adaptiveRouting": true, "gdrLevel": "PXB"}, "env": {"NCCL_DEBUG": "INFO"}},
  "pools": [{"resource": "railhead.io/roce", "rails": ["rail0"], "device": "vf", "ncclConfig": "off",
             "deviceNodes": "mount", "binding": "early"}],
  "policy": {"reset": "tenant", "networks": [{"networks": ["a"], "namespaces": ["b"], "allow": ["vlan"],
             "devices": "any", "ipam": ["static"], "sysctls": ["net.core.somaxconn"],
             "fabrics": ["/etc/f.json"], "resolvConf": ["/etc/resolv.conf"]}]}})";

// The objects that parts of railheadd read.
constexpr const char* kSections = R"({
  "version": 1, "rails": [{"name": "rail0", "pf": 0}, {"name": "rail1", "pf": 1}],
  "health": {"intervalSeconds": 5, "vfSeconds": 60, "counterSeconds": 30,
             "link": {"enabled": true, "downAfter": 1, "upAfter": 2}, "rdmaPort": {}, "gone": {}, "unbound": {},
             "vfCount": {}, "aer": {"counters": {"aer_dev_fatal": {"limit": 1, "seconds": 60}}},
             "devlink": {"reporters": ["fw"]}, "pauseStorm": {"counters": {}},
             "errorRate": {"counters": {"x": {"limit": 1, "seconds": 60}, "link_downed": false}}},
  "provision": {"atStart": true, "vfs": 8, "mtu": 1500, "mac": "keep", "driver": "mlx5_core",
                "allowBonded": false,
                "rails": {"rail0": {"vfs": "max", "mtu": 9000, "mac": "derived", "driver": null}}},
  "reachability": {"intervalSeconds": 5, "peers": 2, "paths": 3, "port": 4795, "rdma": true, "podSeconds": 0},
  "nodeStatus": {"nodeCondition": true, "taint": {"effect": "PreferNoSchedule", "whenRailsBelow": 2}, "events": true,
                "kubernetes": {"kubeconfig": "/k", "context": "c", "timeoutSeconds": 5}}})";

constexpr const char* kClaims = R"({
  "version": 1, "rails": [{"name": "rail0", "pf": 0}],
  "addresses": {"index": {"from": "kubernetes", "fenceSeconds": 43200, "reclaimSeconds": 86400,
                          "kubernetes": {"kubeconfig": "/k", "context": "c", "timeoutSeconds": 5}}}})";

constexpr const char* kGroups = R"({
  "version": 1, "rails": [{"name": "rail0", "pf": 0, "nodeBlock": 26}, {"name": "rail1", "pf": 1}],
  "nodeGroups": [{"name": "su1", "nodes": ["gpu-[01-32]", "a?b*"], "indices": "32-63",
                  "rails": {"rail0": {"subnet": "10.1.0.0/16", "mtu": null}, "rail1": false}, "reachability": null,
                  "pools": [{"resource": "railhead.io/roce", "rails": ["rail0"]}]},
                 {"name": "old", "nodes": "x", "addresses": {"conflictProbeMs": 0}, "rdmaMode": "shared", "ncclConfig": {},
                  "health": false, "provision": {"vfs": 1}, "nodeStatus": {"events": true}}]})";

constexpr const char* kOfNode = R"({
  "version": 1, "rails": [{"name": "rail0", "pf": 0, "subnet": "10.1.0.0/16", "nodeBlock": 26, "indices": "32-63", "index": 5},
    {"name": "rail1", "pf": 1, "subnet": "10.2.0.0/16", "nodeSubnet": 31, "gateway": "other", "routes": "rails",
     "probeAddresses": "last", "fabricSubnets": ["10.2.0.0/15"]}],
  "node": {"name": "gpu-01", "groups": ["su1"], "indices": "32-63", "reserved": ["0", "7-9"]}})";

constexpr const char* kNetwork = R"({
  "cniVersion": "1.1.0", "name": "net", "type": "railhead", "cni.dev/x": 1, "dns": {},
  "deviceID": "0000:43:00.1", "resourceName": "railhead.io/roce", "rail": "rail0",
  "fabric": "/etc/railhead/fabric.json", "vlan": 100, "vlanQoS": 3, "vlanProto": "802.1Q",
  "mac": "02:00:00:00:00:01", "spoofchk": "on", "trust": "off", "link_state": "auto", "min_tx_rate": 1,
  "max_tx_rate": 10, "mtu": 1500, "altNames": ["x"], "alias": "a", "txQLen": 1000, "promisc": false,
  "allmulti": true, "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}, "gateway": "10.0.0.1",
  "routes": ["10.0.0.0/8"], "table": 7, "softRoce": true, "announce": true, "conflictProbeMs": 0,
  "requireGateway": true, "linkTimeoutSeconds": 5, "previousDelTimeoutSeconds": 6, "ncclConfig": "auto",
  "ipam": {"type": "railhead-ipam", "rail": "rail0"}, "prevResult": {},
  "runtimeConfig": {"deviceID": "0000:43:00.2", "mac": "02:00:00:00:00:02", "ips": [],
                    "CNIDeviceInfoFile": "/run/k8s.cni.cncf.io/devinfo/cni/x"}})";

// A network whose addresses railhead-ipam gives.
std::string WithIpam(const std::string& fields) {
  return R"({"cniVersion": "1.1.0", "name": "net", "type": "railhead", "ipam": {"type": "railhead-ipam", )" +
         fields + "}}";
}

constexpr const char* kTopology = R"({
  "paths": [{"nic": "0000:43:00.0", "accelerator": "0000:1b:00.0", "path": "PIX"},
            {"nic": "0000:43:00.0", "accelerator": "0000:1c:00.0", "path": "PXB"},
            {"nic": "0000:44:00.0", "accelerator": "0000:1b:00.0", "path": "sys"}],
  "accelerators": {"vendors": ["10de", "1002", "8086:0380"], "ids": {"a": "0000:1b:00.0", "b": "0000:1c:00.0"}}})";

const std::vector<Subject>& Subjects() {
  static const std::vector<Subject> subjects = {
      {"fabric",
       ParseWholeFabric,
       {kFabric, kSections, kClaims, kGroups, kOfNode},
       {"/rails: must not be empty",
        ".*: is not an integer but a fraction",
        "/rails/\\d+/name: holds a blank",
        "/rails/\\d+/expectedSwitches: must not be empty",
        "/rails/\\d+/vlanQoS: needs a vlan",
        "/rails/\\d+/(probeAddresses|probeAddresses/.*): .* is not an IP address",
        "/rails/\\d+/gateway: .* is (neither an IP address nor|in no network of length)",
        "/rails/\\d+/(subnet|routes/\\d+|fabricSubnets/\\d+): .* is not an address with prefix length",
        "/rails/\\d+/(exclude/\\d+|probeAddresses|nodeRanges/.*): .* is not an address, range or prefix",
        "/rails/\\d+/subnet: is required with nodeRanges, nodeBlock or nodeSubnet",
        "/rails/\\d+/gateway: needs a subnet",
        "/rails/\\d+/routes: needs a gateway",
        "/rails/\\d+/probeAddresses(/.*)?: .* is outside the rail's subnet",
        "/rails/\\d+/probeAddresses: a range needs an index for each node",
        "/rails/\\d+/(nodeBlock|nodeSubnet): cannot stand beside",
        "/rails/\\d+/(nodeBlock|nodeSubnet): \\d+ does not divide",
        "/rails/\\d+/probeAddresses: (a range cannot stand beside nodeSubnet|is of a node's own addresses)",
        "/rails/\\d+/name: another rail is called",
        "/rails/\\d+/table: (253, 254 and 255|rail '.*' has table)",
        "/nodes/.*: another node has index",
        "/rails/\\d+/probeAddresses: .* has no address for node",
        "/rails/\\d+/(gateway|nodeRanges/.*): .* is outside the subnet",
        "/pools/\\d+/rails: fabric.json has no rail",
        "/pools/\\d+/resource: .* is not an extended resource name",
        "/pools/\\d+/ncclConfig: 'off' cannot serve slots",
        "/pools/\\d+/deviceNodes: 'mount' cannot serve",
        "/pools/\\d+/device: 'pf' cannot serve rail",
        "/ncclConfig/env/.*: (is not a variable name|must be one line|is also set by|differs between pods)",
        "/policy/networks/\\d+/allow: .* is not a key that needs a permission",
        "/policy/networks/\\d+/(fabrics|resolvConf): .* is not an absolute path",
        "/addresses/index/reclaimSeconds: is (less than twice fenceSeconds|not more than reuseDelaySeconds)",
        "/(addresses/index|nodeStatus)/kubernetes/kubeconfig: .* is not an absolute path",
        "/(addresses/index|nodeStatus)/kubernetes/context: is of use with a kubeconfig only",
        "/health/.*/counters/.*: is not a valid counter name",
        "/health/.*/counters/.*/seconds: is required for a counter that has no default",
        "/health/devlink/reporters: .* is not a valid name of a health reporter",
        "/provision/(rails/.*/)?driver: .* is not a valid driver name",
        "/provision/rails/.*: the fabric has no rail",
        "/nodeStatus/taint/whenRailsBelow: the fabric has only",
        "/(rails/\\d+|nodeGroups/\\d+|node)/(indices|reserved/\\d+): .* is not a range of indices",
        "/nodeGroups/\\d+/(name: another group|nodes|indices: .* overlaps|rails)",
        "/node: cannot stand beside",
        "/rails/\\d+/index: all nodes would give the same addresses",
        ".*over the base: ",
        "/nodeStatus/maxUnavailable: is neither a number of nodes nor a percentage"}},
      {"network",
       ParseNetwork,
       {kNetwork,
        WithIpam(
            R"("fabric": "/etc/f.json", "rail": "rail0", "gateway": "10.0.0.1", "vf": 3, "mac": "02:00:00:00:00:01", "node_slice_size": "/26",
                    "exclude": ["10.0.0.3"], "reuseDelaySeconds": 60, "minReuseDelaySeconds": 5, "resolvConf": "/etc/resolv.conf",
                    "routes": [{"dst": "10.0.0.0/8", "gw": "10.0.0.1", "mtu": 1500, "advmss": 1460, "priority": 1,
                                "table": 7, "scope": 0}])"),
        WithIpam(R"("links": [{"ifname": "net1", "subnet": "10.0.0.0/24", "rangeStart": "10.0.0.1",
                               "rangeEnd": "10.0.0.9", "gateway": "10.0.0.1", "exclude": [], "routes": []}])"),
        WithIpam(R"("ranges": [[{"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.1", "rangeEnd": "10.0.0.9",
                                 "gateway": "10.0.0.1"}]],
                    "range": "10.1.0.0/24", "range_start": "10.1.0.1", "range_end": "10.1.0.9",
                    "ipRanges": [{"range": "10.2.0.0/24", "range_start": "10.2.0.1", "range_end": "10.2.0.9",
                                  "exclude": ["10.2.0.3"]}],
                    "addresses": [{"address": "10.3.0.1/24", "gateway": "10.3.0.254"}],
                    "dns": {"domain": "d", "nameservers": ["10.0.0.1"], "search": ["s"], "options": ["o"]})")},
       {".*: is not an integer but a fraction",
        "/(runtimeConfig/)?mac: .* is (no|not a) (unicast )?MAC address",
        "/vlanQoS: needs a vlan",
        "/vlanProto: 802.1ad needs a vlan",
        "/min_tx_rate: is above max_tx_rate",
        "/gateway: .* is not an IP address",
        "/routes/\\d+: .* is not an address with prefix length",
        "/altNames/\\d+: .* is not an interface name",
        "/fabric: .* is not an absolute path",
        "/runtimeConfig/CNIDeviceInfoFile: .* is not (an absolute path|a file in )",
        "/devices: stands beside a deviceID",
        "/table: 253, 254 and 255",
        "/ipam/type: is required",
        "/ipam/(.*/)?(subnet|dst|address): .* is not an address with prefix length",
        "/ipam/(.*/)?(gateway|gw|rangeStart|rangeEnd|range_start|range_end): .* is not an IP address",
        "/ipam/(.*/)?mac: .* is not a MAC address",
        "/ipam/(.*/)?exclude/\\d+: .* is not an address, range or prefix",
        "/ipam/(.*/)?range: .* is not a range",
        "/ipam/node_slice_size: .* is not a prefix length",
        "/ipam/.*: cannot be given together with '(rail|links|dns)'",
        "/ipam/links/\\d+: has neither 'rail' nor 'subnet'",
        "/ipam/links/\\d+/ifname: is not an interface name",
        "/ipam/ranges/\\d+: is an empty set",
        "/sysctl/.*: is not a sysctl"}},
      {"topology",
       ParseTopology,
       {kTopology},
       {"/paths/\\d+/(nic|accelerator): .* is not a PCI address", "/paths/\\d+/path: .* is not a path class",
        "/accelerators/vendors/\\d+: .* is not a PCI vendor",
        "/accelerators/ids/.*: .* is not a PCI address"}}};
  return subjects;
}

class SchemaTest : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    json_ = Json::parse(railctl::Schemas().at(GetParam().name)().dump());
    const valijson::adapters::NlohmannJsonAdapter adapter(json_);
    valijson::SchemaParser().populateSchema(adapter, schema_);
    for (const char* rule : GetParam().rules) rules_.emplace_back(std::string(rule) + ".*");
  }

  bool SchemaTakes(const Json& document) {
    const valijson::adapters::NlohmannJsonAdapter adapter(document);
    return valijson::Validator().validate(schema_, adapter, nullptr);
  }

  // Both agree, or it is one of the rules.
  void Compare(const Json& document) {
    const std::string text = document.dump();
    const auto parsed = GetParam().parse(text);
    ++compared_;
    if (!SchemaTakes(document)) {
      ++refused_;
      EXPECT_FALSE(parsed) << "only the schema refuses " << text;
    } else if (!parsed) {
      const std::string message = parsed.error().message;
      const std::string why = message.substr(message.find(": ") + 2);
      const bool listed =
          std::ranges::any_of(rules_, [&](const std::regex& rule) { return std::regex_match(why, rule); });
      EXPECT_TRUE(listed) << "only the parser refuses, by a rule that is not listed: " << why << "\n" << text;
    }
  }

  // `document` with each of these at `place`.
  void CompareWith(Json& document, Json& place) {
    static const std::vector<Json> values = {nullptr,
                                             true,
                                             0,
                                             7,
                                             -1,
                                             std::int64_t{1} << 40,
                                             2.5,
                                             "",
                                             "zzz",
                                             "off",
                                             "/x",
                                             "10.0.0.0/8",
                                             "10.0.0.1",
                                             Json::array(),
                                             Json::array({"x"}),
                                             Json::array({7}),
                                             Json::array({Json::object()}),
                                             {{"x", 1}},
                                             {{"x", "y"}}};
    const Json good = place;
    for (const Json& value : values) {
      place = value;
      Compare(document);
    }
    place = good;
  }

  // If the schema states a default, it accepts that value.
  void CompareDefault(Json& document, Json& place, const Json& schema) {
    if (!schema.contains("default")) return;
    const Json good = std::exchange(place, schema["default"]);
    EXPECT_TRUE(SchemaTakes(document)) << document.dump();
    Compare(document);
    place = good;
  }

  // The properties of an object's schema, whatever its type.
  static Json PropertiesOf(const Json& schema) {
    Json properties = schema.value("properties", Json::object());
    for (const Json& one : schema.value("allOf", Json::array())) {
      for (const auto& [key, of] : one["then"]["properties"].items()) {
        if (Json& known = properties[key]; known.empty()) known = of;
      }
    }
    return properties;
  }

  // Every value there is, and every key that the schema knows at this object.
  void Visit(Json& document, Json& place, const Json& schema) {
    if (place.is_object()) {
      const Json properties = PropertiesOf(schema);
      for (const auto& [key, of] : properties.items()) {
        if (of == true) continue;  // somebody else's
        const bool there = place.contains(key);
        CompareDefault(document, place[key], of);
        CompareWith(document, place[key]);
        if (!there) place.erase(key);
        if (there) Visit(document, place[key], of);
      }
      CompareWith(document, place["qqqq"]);
      place.erase("qqqq");
      for (auto& [key, value] : place.items()) {
        if (properties.contains(key)) continue;
        CompareWith(document, value);
        if (const Json of = schema.value("additionalProperties", Json()); of.is_object())
          Visit(document, value, of);
      }
    } else if (place.is_array()) {
      for (Json& one : place) {
        CompareWith(document, one);
        Visit(document, one, schema.value("items", Json::object()));
      }
    }
  }

  Json json_;
  valijson::Schema schema_;
  std::vector<std::regex> rules_;
  int compared_ = 0;
  int refused_ = 0;
};

TEST_P(SchemaTest, RefusesOnlyWhatTheParserRefuses) {
  for (const std::string& text : GetParam().documents) {
    Json document = Json::parse(text);
    ASSERT_TRUE(SchemaTakes(document));
    const auto parsed = GetParam().parse(text);
    ASSERT_TRUE(parsed) << Describe(parsed.error());
    Visit(document, document, json_);
    EXPECT_EQ(document, Json::parse(text)) << "each change is undone";
  }
  EXPECT_GT(compared_, 500);
  EXPECT_GT(refused_, compared_ / 4);
}

// Keys that a document of the test lacks would not be compared within.
TEST_P(SchemaTest, DocumentsHaveEveryKey) {
  std::set<std::string> lacking;
  const std::function<void(const Json&, const Json&, const std::string&)> look =
      [&](const Json& schema, const Json& place, const std::string& at) {
        const Json properties = PropertiesOf(schema);
        for (const auto& [key, of] : properties.items()) {
          if (of == true || !of.contains("properties")) continue;
          if (!place.contains(key)) lacking.insert(at + "/" + key);
          look(of, place.value(key, Json::object()), at + "/" + key);
        }
      };
  Json all;
  for (const std::string& text : GetParam().documents) all.merge_patch(Json::parse(text));
  look(json_, all, "");
  EXPECT_EQ(lacking, std::set<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Of, SchemaTest, ::testing::ValuesIn(Subjects()),
                         [](const auto& of) { return std::string(of.param.name); });

// A fabric reads back as it was written.
TEST(SchemaRoundTripTest, Fabric) {
  const auto fabric = ParseFabric(kFabric, "f");
  ASSERT_TRUE(fabric) << Describe(fabric.error());
  const auto text = FormatRecord(*fabric, "f");
  ASSERT_TRUE(text) << Describe(text.error());
  const auto again = ParseFabric(*text, "again");
  ASSERT_TRUE(again) << Describe(again.error()) << "\n" << *text;
  EXPECT_EQ(*again, *fabric);
}

}  // namespace
}  // namespace railhead
