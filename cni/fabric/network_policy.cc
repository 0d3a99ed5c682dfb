#include "cni/fabric/network_policy.h"

#include <fnmatch.h>

#include <algorithm>

#include "netns/nl/vf_settings.h"

namespace railhead {
namespace {

bool Matches(const std::vector<std::string>& patterns, const std::string& text) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
         });
}

}  // namespace

// A VF's rate has two keys.
std::set<std::string> RestrictedKeys() {
  std::set<std::string> keys = {"vlanQoS", "vlanProto",       "min_tx_rate", "max_tx_rate", "gateway",
                                "rail",    "conflictProbeMs", "ips",         "addresses"};
  ForEachVfSetting([&](const std::string& key, auto /*setting*/) {
    if (key != "rate") keys.insert(key);
  });
  return keys;
}

NetworkPermissions PermissionsFor(const NetworkPolicy& policy, const std::string& network,
                                  const std::string& pod_namespace) {
  NetworkPermissions may;
  for (const NetworkRule& rule : policy.rules) {
    if (!Matches(rule.networks, network) || !Matches(rule.namespaces, pod_namespace)) continue;
    may.any_device = may.any_device || rule.any_device;
    if (rule.keys.contains("*")) may.keys.merge(RestrictedKeys());
    may.keys.insert(rule.keys.begin(), rule.keys.end());
    may.ipam_types.insert(rule.ipam_types.begin(), rule.ipam_types.end());
    may.sysctls.insert(rule.sysctls.begin(), rule.sysctls.end());
    may.fabric_paths.insert(rule.fabric_paths.begin(), rule.fabric_paths.end());
    may.resolv_confs.insert(rule.resolv_confs.begin(), rule.resolv_confs.end());
  }
  return may;
}

}  // namespace railhead
