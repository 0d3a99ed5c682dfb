#include "deviceplugin/tools/migrate/policy.h"

#include <utility>

#include "cni/attachment/permissions.h"
#include "cni/attachment/plugin_config.h"
#include "cni/fabric/policy.h"
#include "cni/protocol/plugin.h"

namespace railhead::migrate {
namespace {

// As if a pod asked. Names that no sysctl and no IPAM plugin of a network has.
bool IsAllowed(const CniRequest& request, const PluginConfig& config, const NetworkRule& rule) {
  Fabric fabric;
  fabric.policy.rules.push_back(rule);
  CniRequest of_pod = request;
  of_pod.args["K8S_POD_NAME"] = "pod";
  return CheckPermissions(CallPermissions(fabric, request.network, of_pod.args), of_pod, config).has_value();
}

template <typename Set>
bool IsNeeded(const CniRequest& request, const PluginConfig& config, NetworkRule all, Set NetworkRule::*set,
              const std::string& word) {
  (all.*set).erase(word);
  return !IsAllowed(request, config, all);
}

OrderedJson RuleFor(const CniRequest& request, const PluginConfig& config) {
  NetworkRule all;
  for (const std::string_view key : kRestrictedKeys) all.keys.emplace(key);
  all.ipam_types.insert(config.ipam_type);
  for (const auto& [path, value] : config.tuning.sysctls) all.sysctls.insert(path);
  OrderedJson rule;
  for (const std::string& key : all.keys) {
    if (IsNeeded(request, config, all, &NetworkRule::keys, key)) rule["allow"].push_back(key);
  }
  if (IsNeeded(request, config, all, &NetworkRule::ipam_types, config.ipam_type))
    rule["ipam"].push_back(config.ipam_type);
  for (const std::string& path : all.sysctls) {
    if (IsNeeded(request, config, all, &NetworkRule::sysctls, path)) rule["sysctls"].push_back(path);
  }
  return rule;
}

}  // namespace

Result<void> AddPolicy(OrderedJson* fabric, std::vector<Network>* networks) {
  for (Network& network : *networks) {
    if (!network.usable) continue;
    CniRequest request;
    request.config = ConfigOf(network);
    request.network = network.network;
    OrderedJson rule = RuleFor(request, RH_TRY_WRAP(ReadPluginConfig(request), network.source));
    if (rule.empty()) continue;
    OrderedJson entry = {{"networks", {network.network}}};
    entry.update(rule);
    network.remarks.push_back("fabric.json's `policy` allows it what it says: " + rule.dump());
    (*fabric)["policy"]["networks"].push_back(std::move(entry));
  }
  return {};
}

}  // namespace railhead::migrate
