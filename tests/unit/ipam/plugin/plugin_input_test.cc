// railhead-ipam and bad input: a CNI error that names the field, nothing made.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/ipam/run_ipam.h"
#include "tests/support/ipam/support.h"

namespace railhead::testing {
namespace {

using nlohmann::json;

struct Bad {
  const char* name;
  const char* ipam;   // merged into a sound `ipam` object; null removes a field
  const char* error;  // must be in it
};

std::ostream& operator<<(std::ostream& out, const Bad& bad) {
  return out << bad.name;
}

json Sound() {
  return {{"cniVersion", "1.0.0"},
          {"name", "rail0"},
          {"type", "macvlan"},
          {"ipam", {{"type", "railhead-ipam"}, {"subnet", "10.0.0.0/24"}, {"gateway", "10.0.0.1"}}}};
}

class BadInput : public ::testing::TestWithParam<Bad> {};

TEST_P(BadInput, IsRefused) {
  const ScratchRoot scratch;
  json config = Sound();
  config["ipam"].merge_patch(json::parse(GetParam().ipam));
  const Answer answer = RunIpam(scratch.path(), {"ADD", "abc", config.dump()});
  const std::string error = answer.Error();
  EXPECT_EQ(error.substr(0, 3), "7: ") << error;
  EXPECT_NE(error.find(GetParam().error), std::string::npos) << error;
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "something was made";
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadInput,
    ::testing::Values(
        Bad{"GatewayOutside", R"({"gateway": "10.0.1.1"})", "gateway 10.0.1.1 is not in subnet 10.0.0.0/24"},
        Bad{"GatewayNoAddress", R"({"gateway": "10.0.0"})", "/ipam/gateway: '10.0.0' is not an IP address"},
        Bad{"GatewayWrongType", R"({"gateway": 1})", "/ipam/gateway: is not a string"},
        Bad{"SubnetNoPrefix", R"({"subnet": "10.0.0.0"})", "/ipam/subnet: '10.0.0.0' is not a prefix"},
        Bad{"SubnetHostBits", R"({"subnet": "10.0.0.7/24"})", "write 10.0.0.0/24"},
        Bad{"SubnetMissing", R"({"subnet": null})",
            "/ipam: has none of 'rail', 'subnet', 'ranges' and 'links'"},
        Bad{"RailAndSubnet", R"({"rail": "rail0"})", "/ipam/subnet: cannot be given together with 'rail'"},
        Bad{"Misspelt", R"({"rangeStrat": "10.0.0.5"})",
            "/ipam/rangeStrat: unknown field; did you mean 'rangeStart'?"},
        Bad{"Unknown", R"({"frobnicate": true})", "/ipam/frobnicate: unknown field"},
        Bad{"RangeOutside", R"({"rangeEnd": "10.0.1.5"})", "is not in subnet 10.0.0.0/24"},
        Bad{"RangeReversed", R"({"rangeStart": "10.0.0.9", "rangeEnd": "10.0.0.5"})",
            "rangeStart 10.0.0.9 is not before rangeEnd 10.0.0.5"},
        Bad{"RangeOfTheOtherFamily", R"({"rangeStart": "fd00::1"})", "rangeStart fd00::1"},
        Bad{"ExcludeNoRange", R"({"exclude": ["10.0.0.3", "10.0.0.x"]})",
            "/ipam/exclude: item 1: '10.0.0.x'"},
        Bad{"ExcludeNoList", R"({"exclude": "10.0.0.3"})", "/ipam/exclude: is not a list of strings"},
        Bad{"ExcludeEverything", R"({"exclude": ["10.0.0.0/24"]})", "has no address left"},
        Bad{"RouteWithoutDestination", R"({"routes": [{"gw": "10.0.0.1"}]})",
            "/ipam/routes/0/dst: is missing"},
        Bad{"RouteGatewayOutside", R"({"routes": [{"dst": "10.0.0.0/8", "gw": "10.9.0.1"}]})",
            "gw 10.9.0.1 is not in"},
        Bad{"RouteUnknownField", R"({"routes": [{"dst": "10.0.0.0/8", "via": "x"}]})",
            "/ipam/routes/0/via: unknown"},
        Bad{"RoutesNoList", R"({"routes": {"dst": "10.0.0.0/8"}})", "/ipam/routes: is not a list"},
        Bad{"RestNegative", R"({"restSeconds": -1})", "/ipam/restSeconds: -1 is out of range"},
        Bad{"RestFraction", R"({"restSeconds": 1.5})", "/ipam/restSeconds: is not an integer"},
        Bad{"RestHuge", R"({"restSeconds": 18446744073709551615})", "/ipam/restSeconds"},
        Bad{"RestText", R"({"restSeconds": "60"})", "/ipam/restSeconds: is not an integer"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

std::string AddWith(const std::string& config) {
  const ScratchRoot scratch;
  const std::string error = RunIpam(scratch.path(), {"ADD", "abc", config}).Error();
  return std::filesystem::is_empty(scratch.path()) ? error : "something was made; " + error;
}

TEST(BadConfiguration, NoJsonAndNoObject) {
  for (const char* text : {"", "{", "[]", "7", R"({"cniVersion": "1.0.0", "name": "a",})", "\xff\xfe"}) {
    const std::string error = AddWith(text);
    EXPECT_TRUE(error.substr(0, 2) == "6:" || error.substr(0, 2) == "7:") << text << " -> " << error;
  }
}

TEST(BadConfiguration, TheIpamObject) {
  json config = Sound();
  config.erase("ipam");
  EXPECT_EQ(AddWith(config.dump()).substr(0, 2), "7:") << AddWith(config.dump());
  config["ipam"] = "railhead-ipam";
  EXPECT_NE(AddWith(config.dump()).find("/ipam: is not an object"), std::string::npos)
      << AddWith(config.dump());
}

TEST(BadConfiguration, TwiceTheSameField) {
  const std::string config =
      R"({"cniVersion": "1.0.0", "name": "a", "ipam": {"type": "railhead-ipam", "subnet": "10.0.0.0/24", "subnet": "10.0.1.0/24"}})";
  EXPECT_NE(AddWith(config).find("'subnet' is there twice"), std::string::npos) << AddWith(config);
}

TEST(BadConfiguration, Oversized) {
  json config = Sound();
  config["comment"] = std::string(3 << 20, 'x');
  EXPECT_EQ(AddWith(config.dump()).substr(0, 2), "6:") << AddWith(config.dump());
}

TEST(BadConfiguration, TooDeep) {
  const std::string config = R"({"cniVersion": "1.0.0", "name": "a", "ipam": )" + std::string(100'000, '[') +
                             std::string(100'000, ']') + "}";
  EXPECT_EQ(AddWith(config).substr(0, 2), "6:") << AddWith(config);
}

TEST(BadConfiguration, VersionsThatAreNotSupported) {
  json config = Sound();
  for (const char* version : {"0.1.0", "0.2.0", "1.2.0", "2", ""}) {
    config["cniVersion"] = version;
    EXPECT_EQ(AddWith(config.dump()).substr(0, 2), "1:") << version << ": " << AddWith(config.dump());
  }
}

TEST(BadStore, IsNamedWithTheWayOut) {
  const ScratchRoot scratch;
  scratch.Write("/var/lib/railhead/ipam/store.mdb", std::string(9000, 'x'));
  for (const char* command : {"ADD", "DEL", "CHECK"}) {
    const std::string error = RunIpam(scratch.path(), {command, "abc", Sound().dump()}).Error();
    EXPECT_EQ(error.substr(0, 2), "5:") << error;
    EXPECT_NE(error.find(scratch.StorePath()), std::string::npos) << error;
    EXPECT_NE(error.find("move it away"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace railhead::testing
