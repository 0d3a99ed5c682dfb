#include "cni/attachment/check_permissions.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni/attachment/plugin_config_shape.h"
#include "cni/fabric/network_policy.h"
#include "netns/json/record.h"
#include "netns/nl/link.h"

namespace railhead::attachment {
namespace {

constexpr std::string_view kNet = "net/";

// Collects the keys of a list's fields that have a value.
template <typename T>
class KeysWithValue {
 public:
  KeysWithValue(const T& object, std::vector<const char*>& keys) : object_(object), keys_(keys) {}

  template <typename C, typename M>
  void operator()(const char* key, std::optional<M> C::*member, const FieldRules& /*rules*/ = {}) {
    if (object_.*member) keys_.push_back(key);
  }
  template <typename F>
  void Form(const char* key, F /*form*/, const FieldRules& /*rules*/ = {}) {
    (*this)(key, F::kField);
  }
  template <typename C, typename M, typename List>
  void Part(M C::*member, List list) {
    KeysWithValue<M> part(object_.*member, keys_);
    list(part);
  }

 private:
  const T& object_;
  std::vector<const char*>& keys_;
};

}  // namespace

Result<void> CheckPermissions(const CallPermissions& may, const CniRequest& request,
                              const PluginConfig& config) {
  std::vector<const char*> restricted;
  KeysWithValue<PluginConfig> collect(config, restricted);
  Shape<PluginConfig>::ListVfSettings(collect);
  collect("gateway", &PluginConfig::gateway);
  collect("conflictProbeMs", &PluginConfig::conflict_probe_ms);
  for (const char* key : restricted) RH_TRY(may.Require(key, std::string("/") + key));
  RH_TRY(may.RequireFabric(config.fabric_path, "/fabric"));
  for (const auto& [path, value] : config.requested.sysctls) {
    RH_TRY(may.RequireSysctl(path.substr(kNet.size()), "/sysctl"));
  }
  RH_TRY(may.RequireIpamType(config.ipam_type));
  // The keys of another IPAM plugin are not checked: root allows the whole plugin.
  return config.ipam_type.empty() || config.ipam_type == kOwnIpam
             ? may.RequireIpam(request.config, request.args)
             : Result<void>();
}

}  // namespace railhead::attachment
