#include "cni/attachment/permissions.h"

#include <string>
#include <string_view>

namespace railhead {
namespace {

constexpr std::string_view kNet = "net/";

}  // namespace

Result<void> CheckPermissions(const CallPermissions& may, const CniRequest& request,
                              const PluginConfig& config) {
  const auto require = [&](bool given, const char* key) -> Result<void> {
    return given ? may.Require(key, std::string("/") + key) : Result<void>();
  };
  RH_TRY(require(config.vlan.has_value(), "vlan"));
  RH_TRY(require(config.vlan_qos.has_value(), "vlanQoS"));
  RH_TRY(require(config.vlan_proto.has_value(), "vlanProto"));
  RH_TRY(require(config.mac.has_value(), "mac"));
  RH_TRY(require(config.trust.has_value(), "trust"));
  RH_TRY(require(config.spoofchk.has_value(), "spoofchk"));
  RH_TRY(require(config.link_state.has_value(), "link_state"));
  RH_TRY(require(config.min_tx_rate.has_value(), "min_tx_rate"));
  RH_TRY(require(config.max_tx_rate.has_value(), "max_tx_rate"));
  RH_TRY(require(config.gateway.has_value(), "gateway"));
  RH_TRY(require(config.conflict_probe_ms.has_value(), "conflictProbeMs"));
  RH_TRY(may.RequireFabric(config.fabric_path, "/fabric"));
  for (const auto& [path, value] : config.tuning.sysctls) {
    RH_TRY(may.RequireSysctl(path.substr(kNet.size()), "/sysctl"));
  }
  RH_TRY(may.RequireIpamType(config.ipam_type));
  // What another IPAM plugin reads is its own affair: it is one that root allows.
  return config.ipam_type.empty() || config.ipam_type == kOwnIpam
             ? may.RequireIpam(request.config, request.args)
             : Result<void>();
}

}  // namespace railhead
