#include "deviceplugin/tools/migrate/add_policy.h"

#include <string>
#include <utility>

#include "cni/attachment/check_permissions.h"
#include "cni/attachment/plugin_config.h"
#include "cni/fabric/fabric.h"
#include "cni/fabric/network_policy.h"
#include "cni/protocol/cni_request.h"

namespace railhead::migrate {
namespace {

// Whether the rule allows the network when a pod asks for it.
bool IsAllowed(const CniRequest& request, const attachment::PluginConfig& config, const NetworkRule& rule) {
  Fabric fabric;
  fabric.policy.rules.push_back(rule);
  CniRequest of_pod = request;
  of_pod.args["K8S_POD_NAME"] = "pod";
  return CheckPermissions(CallPermissions(fabric, request.network, of_pod.args), of_pod, config).has_value();
}

template <typename Set>
bool IsNeeded(const CniRequest& request, const attachment::PluginConfig& config, const NetworkRule& all,
              Set NetworkRule::*set, const std::string& word) {
  NetworkRule without = all;
  (without.*set).erase(word);
  return !IsAllowed(request, config, without);
}

OrderedJson RuleFor(const CniRequest& request, const attachment::PluginConfig& config) {
  NetworkRule all;
  all.keys = RestrictedKeys();
  all.ipam_types.insert(config.ipam_type);
  for (const auto& [path, value] : config.requested.sysctls) all.sysctls.insert(path);
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
    OrderedJson rule = RuleFor(request, RH_TRY_WRAP(attachment::ReadPluginConfig(request), network.source));
    if (rule.empty()) continue;
    OrderedJson entry = {{"networks", {network.network}}};
    entry.update(rule);
    network.remarks.push_back("fabric.json's `policy` allows it what it says: " + rule.dump());
    (*fabric)["policy"]["networks"].push_back(std::move(entry));
  }
  return {};
}

}  // namespace railhead::migrate
