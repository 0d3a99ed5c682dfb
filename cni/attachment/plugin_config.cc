#include "cni/attachment/plugin_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::attachment {
namespace {

constexpr std::uint32_t kMaxRate = 10'000'000;  // Mbit/s
constexpr int kMaxWaitSeconds = 200;            // kubelet gives a sandbox 4 minutes
constexpr int kMaxProbeMs = 10'000;             // RFC 5227's own times come to 9 s
constexpr std::size_t kMaxAltName = 127;        // ALTIFNAMSIZ - 1
constexpr std::size_t kMaxAlias = 255;          // IFALIASZ - 1

std::optional<int> SmallInt(JsonReader& reader, const std::string& key, int min, int max) {
  const auto value = reader.Int(key, min, max);
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

std::optional<std::uint32_t> Rate(JsonReader& reader, const std::string& key) {
  const auto value = reader.Int(key, 0, kMaxRate);
  return value ? std::optional<std::uint32_t>(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

std::optional<bool> OnOff(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text || text->empty()) return std::nullopt;
  if (*text == "on") return true;
  if (*text == "off") return false;
  reader.Fail(key, "'" + *text + "' is not known", "on or off");
  return std::nullopt;
}

std::optional<VfLinkState> LinkState(JsonReader& reader) {
  const auto text = reader.String("link_state");
  if (!text || text->empty()) return std::nullopt;
  if (*text == "auto") return VfLinkState::kAuto;
  if (*text == "enable") return VfLinkState::kEnable;
  if (*text == "disable") return VfLinkState::kDisable;
  reader.Fail("link_state", "'" + *text + "' is not known", "auto, enable or disable");
  return std::nullopt;
}

std::optional<MacAddress> ParseMac(JsonReader& reader, const std::string& key, const std::string& text) {
  const auto mac = MacAddress::Parse(text);
  if (!mac || mac->IsZero() || mac->IsMulticast()) {
    reader.Fail(key, "'" + text + "' is no unicast MAC address", "for example 02:00:00:00:00:01");
    return std::nullopt;
  }
  return mac;
}

// Names and rules as sriov-cni has them: nil is not touched, vlan 0 clears.
void ReadVlan(JsonReader& reader, PluginConfig& config) {
  config.vlan = SmallInt(reader, "vlan", 0, 4094);
  config.vlan_qos = SmallInt(reader, "vlanQoS", 0, 7);
  if (config.vlan_qos.value_or(0) != 0 && config.vlan == 0) {
    reader.Fail("vlanQoS", "needs a vlan other than 0");
  }
  const auto proto = reader.String("vlanProto");
  if (!proto || proto->empty()) return;
  const std::string lower = ToLower(*proto);
  if (lower == "802.1q") {
    config.vlan_proto = kVlanProto8021q;
  } else if (lower == "802.1ad") {
    config.vlan_proto = kVlanProto8021ad;
    if (config.vlan == 0) reader.Fail("vlanProto", "802.1ad needs a vlan other than 0");
  } else {
    reader.Fail("vlanProto", "'" + *proto + "' is not known", "802.1q or 802.1ad");
  }
}

void ReadVfSettings(JsonReader& reader, PluginConfig& config) {
  ReadVlan(reader, config);
  if (const auto mac = reader.String("mac"); mac && !mac->empty()) config.mac = ParseMac(reader, "mac", *mac);
  config.spoofchk = OnOff(reader, "spoofchk");
  config.trust = OnOff(reader, "trust");
  config.link_state = LinkState(reader);
  config.min_tx_rate = Rate(reader, "min_tx_rate");
  config.max_tx_rate = Rate(reader, "max_tx_rate");
  if (config.min_tx_rate.value_or(0) > config.max_tx_rate.value_or(0) &&
      config.max_tx_rate.value_or(0) != 0) {
    reader.Fail("min_tx_rate", "is above max_tx_rate");
  }
  config.mtu = SmallInt(reader, "mtu", 68, 65535);
}

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

void ReadSysctls(JsonReader& reader, PluginConfig& config) {
  auto sysctls = reader.Object("sysctl");
  if (!sysctls) return;
  for (const auto& name : sysctls->Keys()) {
    const auto value = sysctls->String(name);
    const auto path = SysctlPath(name);
    if (!path) {
      sysctls->Fail(name, "is no sysctl of a network namespace",
                    "for example net.ipv4.conf.IFNAME.arp_filter");
    } else if (value && value->empty()) {
      sysctls->Fail(name, "must not be empty", "leave the sysctl out, or give it a value");
    } else if (value) {
      config.tuning.sysctls.emplace_back(*path, *value);
    }
  }
}

// What the plugins `tuning` and `sbr` are chained for, under their names.
void ReadTuning(JsonReader& reader, PluginConfig& config) {
  for (auto& name : reader.Strings("altNames").value_or(std::vector<std::string>{})) {
    const bool bad =
        name.empty() || name.size() > kMaxAltName || name.find_first_of("/ \t\n") != std::string::npos;
    if (bad) reader.Fail("altNames", "'" + name + "' is no interface name");
    config.tuning.alt_names.push_back(std::move(name));
  }
  config.tuning.alias = reader.String("alias");
  if (config.tuning.alias && config.tuning.alias->size() > kMaxAlias)
    reader.Fail("alias", "is longer than 255 bytes");
  config.tuning.tx_queue_len = SmallInt(reader, "txQLen", 0, 1'000'000);
  config.tuning.promiscuous = reader.Bool("promisc");
  config.tuning.all_multicast = reader.Bool("allmulti");
  ReadSysctls(reader, config);
}

void ReadRouting(JsonReader& reader, PluginConfig& config) {
  if (const auto text = reader.String("gateway"); text && !text->empty()) {
    config.gateway = IpAddress::Parse(*text);
    if (!config.gateway) reader.Fail("gateway", "'" + *text + "' is no IP address");
  }
  if (const auto routes = reader.Strings("routes"); routes) {
    config.routes.emplace();
    for (const auto& text : *routes) {
      const auto prefix = IpPrefix::Parse(text);
      if (!prefix || prefix->Network() != *prefix) {
        reader.Fail("routes", "'" + text + "' is no network prefix", "for example 10.0.0.0/8");
      } else {
        config.routes->push_back(*prefix);
      }
    }
  }
  const auto table = reader.Int("table", 1, UINT32_MAX);
  if (!table) return;
  config.table = static_cast<std::uint32_t>(*table);
  if (*table >= 253 && *table <= 255) reader.Fail("table", "253, 254 and 255 are the kernel's");
}

void ReadHandoffAndWaiting(JsonReader& reader, PluginConfig& config) {
  config.soft_roce = reader.Bool("softRoce");
  config.announce = reader.Bool("announce").value_or(true);
  config.conflict_probe_ms = SmallInt(reader, "conflictProbeMs", 0, kMaxProbeMs);
  config.gateway_check = reader.Bool("gatewayCheck").value_or(false);
  config.wait_seconds = SmallInt(reader, "waitSeconds", 0, kMaxWaitSeconds).value_or(config.wait_seconds);
  config.home_wait_seconds =
      SmallInt(reader, "homeWaitSeconds", 0, kMaxWaitSeconds).value_or(config.home_wait_seconds);
  const auto handoff = reader.String("handoff");
  if (!handoff || *handoff == "auto") return;
  if (*handoff == "required") {
    config.handoff = HandoffWish::kRequired;
  } else if (*handoff == "off") {
    config.handoff = HandoffWish::kOff;
  } else {
    reader.Fail("handoff", "'" + *handoff + "' is not known", "auto, required or off");
  }
}

// Runtimes put the device into runtimeConfig.deviceID (capability), deviceID, and
// Multus into pciBusID as well.
void ReadRuntimeConfig(JsonReader& reader, const CniRequest& request, PluginConfig& config) {
  config.device_text = reader.String("pciBusID").value_or("");
  if (const auto id = reader.String("deviceID"); id && !id->empty()) config.device_text = *id;
  config.devices = reader.Strings("devices").value_or(std::vector<std::string>{});
  config.resource = reader.String("resourceName").value_or("");
  if (const auto mac = request.args.find("MAC"); mac != request.args.end()) {
    config.mac = ParseMac(reader, "CNI_ARGS MAC", mac->second);
  }
  // Capabilities for others of the chain are none of ours: no Close().
  if (auto runtime = reader.Object("runtimeConfig"); runtime) {
    if (const auto id = runtime->String("deviceID"); id && !id->empty()) config.device_text = *id;
    if (const auto mac = runtime->String("mac"); mac && !mac->empty())
      config.mac = ParseMac(*runtime, "mac", *mac);
  }
  if (!config.device_text.empty() && !config.devices.empty()) {
    reader.Fail("devices", "stands beside a deviceID", "give one device or several, not both");
  }
}

// What belongs to the runtime or to other plugins of the chain, and what
// sriov-cni's users have in their configurations for its log.
void IgnoreForeign(JsonReader& reader) {
  for (const char* key : {"cniVersion", "cniVersions", "name", "type", "args", "capabilities", "dns",
                          "disableCheck", "disableGC", "loadOnlyInlinedPlugins", "logLevel", "logFile"}) {
    reader.Ignore(key);
  }
  for (const auto& key : reader.Keys()) {
    if (key.starts_with("cni.dev/")) reader.Ignore(key);
  }
}

void ReadIpam(JsonReader& reader, PluginConfig& config) {
  auto ipam = reader.Object("ipam");
  config.ipam_given = ipam.has_value();
  if (!ipam) return;
  config.ipam_type = ipam->String("type").value_or("");
  config.ipam_rail = ipam->String("rail");
  if (config.ipam_type.find('/') != std::string::npos) {
    ipam->Fail("type", "'" + config.ipam_type + "' is no plugin name", "name the plugin without a path");
  }
  if (config.ipam_type.empty() && !ipam->Keys().empty()) {
    ipam->Fail("type", "is required", "name the IPAM plugin, or write \"ipam\": {} for no address");
  }
}

}  // namespace

Result<PluginConfig> ReadPluginConfig(const CniRequest& request) {
  const auto document = RH_TRY(JsonDocument::Parse(request.config, "network configuration"));
  JsonReader reader = document.Root();
  PluginConfig config;
  if (auto rail = reader.String("rail"); rail && !rail->empty()) config.rail = std::move(rail);
  if (auto path = reader.String("fabric"); path) {
    config.fabric_path = *path;
    if (!path->starts_with("/")) reader.Fail("fabric", "'" + *path + "' is no absolute path");
  }
  ReadVfSettings(reader, config);
  ReadTuning(reader, config);
  ReadRuntimeConfig(reader, request, config);
  ReadRouting(reader, config);
  ReadHandoffAndWaiting(reader, config);
  ReadIpam(reader, config);
  if (const auto* previous = reader.Raw("prevResult"); previous != nullptr)
    config.prev_result = previous->dump();
  IgnoreForeign(reader);
  reader.Close();
  RH_TRY(reader.status());
  return config;
}

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

}  // namespace railhead::attachment
