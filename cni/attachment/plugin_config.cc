#include "cni/attachment/plugin_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cni/attachment/device_info_path.h"
#include "cni/attachment/plugin_config_shape.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead::attachment {
namespace {

using record::Complain;

constexpr std::size_t kMaxAltName = 127;  // ALTIFNAMSIZ - 1
constexpr std::size_t kMaxAlias = 255;    // IFALIASZ - 1

// "net.ipv4.conf.IFNAME.arp_ignore" or with slashes, as sysctl(8) has it: '/'
// is then the separator, and dots belong to names.
std::optional<std::string> SysctlPath(const std::string& name) {
  std::string path = name;
  if (path.find('/') == std::string::npos) std::replace(path.begin(), path.end(), '.', '/');
  for (const auto& part : Split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return std::nullopt;
  }
  return path.starts_with("net/") ? std::optional<std::string>(path) : std::nullopt;
}

void CheckMac(const std::optional<MacAddress>& mac, const Complain& complain) {
  if (mac && (mac->IsZero() || mac->IsMulticast()))
    complain("mac", "'" + mac->ToString() + "' is not a unicast MAC address", kUnicastMac.hint);
}

void CheckVfSettings(const PluginConfig& config, const Complain& complain) {
  if (config.vlan_qos.value_or(0) != 0 && config.vlan == 0) complain("vlanQoS", "needs a vlan other than 0");
  if (config.vlan_proto == kVlanProto8021ad && config.vlan == 0)
    complain("vlanProto", "802.1ad needs a vlan other than 0");
  const auto most = config.max_tx_rate.value_or(0);  // 0: no limit
  if (most != 0 && config.min_tx_rate.value_or(0) > most) complain("min_tx_rate", "is above max_tx_rate");
  CheckMac(config.requested.vf.mac, complain);
}

void CheckTuning(const AttachedDevice::Requested& requested, const Complain& complain) {
  for (std::size_t i = 0; i < requested.alt_names.size(); ++i) {
    const std::string& name = requested.alt_names[i];
    if (name.empty() || name.size() > kMaxAltName || name.find_first_of("/ \t\n") != std::string::npos)
      complain(PointerOf("altNames", i), "'" + name + "' is not an interface name");
  }
  if (requested.link.alias && requested.link.alias->size() > kMaxAlias)
    complain("alias", "is longer than 255 bytes");
}

}  // namespace

void SysctlForm::Read(const JsonValue& json, PluginConfig& config) {
  auto sysctls = json.Object();
  if (!sysctls) return;
  for (const auto& name : sysctls->Keys()) {
    const auto value = sysctls->String(name);
    const auto path = SysctlPath(name);
    if (!path) {
      sysctls->Fail(name, "is not a sysctl of a network namespace",
                    "for example net.ipv4.conf.IFNAME.arp_filter");
    } else if (value && value->empty()) {
      sysctls->Fail(name, "must not be empty", "leave the sysctl out, or give it a value");
    } else if (value) {
      config.requested.sysctls.push_back({*path, *value});
    }
  }
}

nlohmann::ordered_json SysctlForm::Schema() {
  return {{"type", "object"}, {"additionalProperties", {{"type", {"string", "null"}}, {"minLength", 1}}}};
}

void IpamForm::Read(const JsonValue& json, PluginConfig& config) {
  auto ipam = json.Object();
  config.has_ipam = ipam.has_value();
  if (!ipam) return;
  config.ipam_type = ipam->String("type").value_or("");
  config.ipam_rail = ipam->String("rail");
  if (config.ipam_type.find('/') != std::string::npos) {
    ipam->Fail("type", "'" + config.ipam_type + "' is not a plugin name", "name the plugin without a path");
  }
  if (config.ipam_type.empty() && !ipam->Keys().empty()) {
    ipam->Fail("type", "is required", "name the IPAM plugin, or write \"ipam\": {} for no address");
  }
}

nlohmann::ordered_json IpamForm::Schema() {
  return {{"type", "object"},
          {"properties",
           {{"type", {{"type", {"string", "null"}}, {"pattern", "^[^/]*$"}}},
            {"rail", {{"type", {"string", "null"}}}}}}};
}

}  // namespace railhead::attachment

void railhead::Shape<railhead::attachment::RuntimeConfig>::Check(const T& runtime,
                                                                 const record::Complain& complain) {
  attachment::CheckMac(runtime.mac, complain);
  const auto& file = runtime.device_info_file;
  if (const auto why = file ? attachment::RefusalOfDeviceInfoFile(*file) : ""; !why.empty())
    complain("CNIDeviceInfoFile", why);
}

void railhead::Shape<railhead::attachment::PluginConfig>::Check(const T& config,
                                                                const record::Complain& complain) {
  attachment::CheckVfSettings(config, complain);
  attachment::CheckTuning(config.requested, complain);
  if (!config.fabric_path.starts_with("/"))
    complain("fabric", "'" + config.fabric_path + "' is not an absolute path");
  const bool one = !config.device_text.empty() || config.runtime.device;
  if (one && !config.devices.empty())
    complain("devices", "stands beside a deviceID", "give one device or several, not both");
  const auto routes = config.routes.value_or(std::vector<IpPrefix>{});
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].Network() != routes[i])
      complain(PointerOf("routes", i), "'" + routes[i].ToString() + "' is not a network prefix",
               "write " + routes[i].Network().ToString());
  }
  if (config.table && *config.table >= 253 && *config.table <= 255)
    complain("table", "253, 254 and 255 are the kernel's");
}

namespace railhead::attachment {

Result<PluginConfig> ReadPluginConfig(const CniRequest& request) {
  auto config =
      RH_TRY(ParseRecord<PluginConfig>(request.config, "network configuration", UnknownFields::kRefuse));
  if (const auto mac = request.args.find("MAC"); mac != request.args.end()) {
    auto& requested = config.requested.vf.mac;
    requested = MacAddress::Parse(mac->second);
    if (!requested || requested->IsZero() || requested->IsMulticast()) {
      return Fail(ErrorCode::kInvalid, "CNI_ARGS MAC: '" + mac->second + "' is not a unicast MAC address",
                  kUnicastMac.hint);
    }
  }
  // runtimeConfig, which is for this call, overrides the network.
  if (config.runtime.mac) config.requested.vf.mac = config.runtime.mac;
  if (config.runtime.device) config.device_text = *config.runtime.device;
  return config;
}

}  // namespace railhead::attachment
