#include "cni/fabric/policy_fields.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "netns/base/text.h"

namespace railhead {
namespace {

std::set<std::string> ReadSet(JsonReader& reader, const char* key) {
  const auto texts = reader.Strings(key).value_or(std::vector<std::string>{});
  return {texts.begin(), texts.end()};
}

std::set<std::string> ReadKeys(JsonReader& reader) {
  std::set<std::string> keys;
  const std::vector<std::string> known(kRestrictedKeys.begin(), kRestrictedKeys.end());
  for (const std::string& key : reader.Strings("allow").value_or(std::vector<std::string>{})) {
    if (key == "*") {
      keys.insert(known.begin(), known.end());
    } else if (Contains(known, key)) {
      keys.insert(key);
    } else {
      const auto near = Nearest(key, known);
      reader.Fail("allow", "'" + key + "' is no key that needs a permission",
                  near ? "did you mean " + *near + "?" : "one of " + Join(known, ", ") + ", or *");
    }
  }
  return keys;
}

std::set<std::string> ReadPaths(JsonReader& reader, const char* key) {
  auto paths = ReadSet(reader, key);
  for (const std::string& path : paths) {
    if (!path.starts_with("/")) reader.Fail(key, "'" + path + "' is no absolute path");
  }
  return paths;
}

NetworkRule ReadRule(JsonReader& reader) {
  NetworkRule rule;
  rule.networks = reader.Strings("networks").value_or(std::vector<std::string>{});
  rule.namespaces = reader.Strings("namespaces").value_or(std::vector<std::string>{});
  rule.keys = ReadKeys(reader);
  if (const auto devices = reader.String("devices"); devices) {
    if (*devices != "allocated" && *devices != "any")
      reader.Fail("devices", "'" + *devices + "' is not known", "allocated or any");
    rule.any_device = *devices == "any";
  }
  rule.ipam_types = ReadSet(reader, "ipam");
  rule.sysctls = ReadSet(reader, "sysctls");
  rule.fabric_paths = ReadPaths(reader, "fabrics");
  rule.resolv_confs = ReadPaths(reader, "resolvConf");
  reader.Close();
  return rule;
}

ResetPolicy ReadReset(JsonReader& reader) {
  const std::string text = reader.String("reset").value_or("tenant");
  if (text == "always") return ResetPolicy::kAlways;
  if (text == "never") return ResetPolicy::kNever;
  if (text != "tenant") reader.Fail("reset", "'" + text + "' is not known", "tenant, always or never");
  return ResetPolicy::kTenant;
}

}  // namespace

NetworkPolicy ReadPolicy(JsonReader& root) {
  NetworkPolicy policy;
  auto reader = root.Object("policy");
  if (!reader) return policy;
  for (JsonReader& rule : reader->Objects("networks")) policy.rules.push_back(ReadRule(rule));
  policy.reset = ReadReset(*reader);
  reader->Close();
  return policy;
}

}  // namespace railhead
