// `policy` of fabric.json: what the rules for a network and a namespace allow together, and every refusal of
// the section with its pointer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/fabric/network_policy.h"

namespace railhead {
namespace {

std::string WithRules(const std::string& rules) {
  return R"({"version":1,"rails":[{"name":"rail0","pf":"pf0"}],"policy":{"networks":[)" + rules + "]}}";
}

std::string ErrorOf(const std::string& rules) {
  const auto fabric = ParseFabric(WithRules(rules), "f");
  return fabric ? "" : Describe(fabric.error());
}

NetworkPermissions Permissions(const std::string& rules, const std::string& network,
                               const std::string& pod_namespace) {
  const auto fabric = ParseFabric(WithRules(rules), "f");
  EXPECT_TRUE(fabric) << Describe(fabric.error());
  return fabric ? PermissionsFor(fabric->policy, network, pod_namespace) : NetworkPermissions{};
}

TEST(PolicyTest, AllowsNothingWithoutARule) {
  const auto may = Permissions("", "net", "train");
  EXPECT_FALSE(may.any_key || may.any_device);
  for (const std::string& key : RestrictedKeys()) EXPECT_FALSE(may.Allows(key)) << key;
  EXPECT_TRUE(may.ipam_types.empty() && may.sysctls.empty() && may.fabric_paths.empty() &&
              may.resolv_confs.empty());
}

// Each of the rules below fits some of the networks and namespaces; what a call may do is the union of those.
TEST(PolicyTest, AddsUpTheRulesWhosePatternsBothFit) {
  const std::string rules = R"({"allow":["trust"]},
    {"networks":["storage-*","plain"],"allow":["vlan"]},
    {"namespaces":["team-?"],"allow":["mac"],"devices":"any"},
    {"networks":["storage-*"],"namespaces":["team-a","infra"],"allow":["min_tx_rate"],"ipam":["host-local"]})";
  for (const std::string network : {"storage-fast", "plain", "other"}) {
    for (const std::string of : {"team-a", "team-b", "infra", ""}) {
      SCOPED_TRACE(network + " of " + of);
      const bool storage = network == "storage-fast";
      const bool team = of.starts_with("team-");
      const bool both = storage && (of == "team-a" || of == "infra");
      const auto may = Permissions(rules, network, of);
      EXPECT_TRUE(may.Allows("trust"));
      EXPECT_EQ(may.Allows("vlan"), storage || network == "plain");
      EXPECT_EQ(may.Allows("mac"), team);
      EXPECT_EQ(may.any_device, team);
      EXPECT_EQ(may.Allows("min_tx_rate"), both);
      EXPECT_EQ(may.ipam_types.contains("host-local"), both);
      EXPECT_FALSE(may.Allows("spoofchk") || may.any_key);
    }
  }
}

TEST(PolicyTest, AStarStandsForEveryKeyAndForNothingElse) {
  const auto may = Permissions(R"({"allow":["*"]})", "net", "train");
  for (const std::string& key : RestrictedKeys()) EXPECT_TRUE(may.Allows(key)) << key;
  EXPECT_FALSE(may.any_device);
  EXPECT_TRUE(may.ipam_types.empty());
}

TEST(PolicyTest, RefusesWhatItDoesNotKnow) {
  const std::vector<std::pair<const char*, const char*>> refused = {
      {R"({"allow":["vlans"]})", "/policy/networks/0/allow: 'vlans'"},
      {R"({"allow":["vlans"]})", "did you mean vlan?"},
      {R"({}, {"allow":["mtu"]})", "/policy/networks/1/allow: 'mtu'"},
      {R"({"devices":"all"})", "/policy/networks/0/devices: 'all'"},
      {R"({"fabrics":["fabric.json"]})", "/policy/networks/0/fabrics: 'fabric.json'"},
      {R"({"resolvConf":["resolv.conf"]})", "/policy/networks/0/resolvConf: 'resolv.conf'"},
      {R"({"network":["a"]})", "/policy/networks/0/network"},
      {R"({"networks":"a"})", "/policy/networks/0/networks"}};
  for (const auto& [rule, message] : refused) {
    EXPECT_NE(ErrorOf(rule).find(message), std::string::npos) << rule << ": " << ErrorOf(rule);
  }
}

}  // namespace
}  // namespace railhead
