#include "cni/plugin/config.h"

#include <nlohmann/json.hpp>

#include "cni/skel/json_reader.h"

namespace railhead {
namespace {

constexpr std::uint32_t kMaxRate = 10'000'000;  // Mbit/s
constexpr int kMaxWaitSeconds = 200;            // kubelet gives a sandbox 4 minutes

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

void ReadVfSettings(JsonReader& reader, PluginConfig& config) {
  config.vlan = SmallInt(reader, "vlan", 0, 4094);
  config.vlan_qos = SmallInt(reader, "vlanQoS", 0, 7);
  if (config.vlan_qos.value_or(0) != 0 && config.vlan == 0) {
    reader.Fail("vlanQoS", "needs a vlan other than 0");
  }
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
  config.wait_seconds = SmallInt(reader, "waitSeconds", 0, kMaxWaitSeconds).value_or(config.wait_seconds);
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
  if (const auto mac = request.args.find("MAC"); mac != request.args.end()) {
    config.mac = ParseMac(reader, "CNI_ARGS MAC", mac->second);
  }
  auto runtime = reader.Object("runtimeConfig");
  if (!runtime) return;
  if (const auto id = runtime->String("deviceID"); id && !id->empty()) config.device_text = *id;
  if (const auto mac = runtime->String("mac"); mac && !mac->empty())
    config.mac = ParseMac(*runtime, "mac", *mac);
  // Capabilities for others of the chain are none of ours: no Close().
}

// What belongs to the runtime or to other plugins of the chain, and what
// sriov-cni's users have in their configurations for its log.
void IgnoreForeign(JsonReader& reader) {
  for (const char* key :
       {"cniVersion", "cniVersions", "name", "type", "args", "capabilities", "dns", "disableCheck",
        "disableGC", "loadOnlyInlinedPlugins", "logLevel", "logFile", "resourceName"}) {
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

Result<PciAddress> DeviceOf(const PluginConfig& config) {
  if (config.device_text.empty()) {
    return Fail(ErrorCode::kInvalid, "network configuration: /deviceID: no device is given",
                "the runtime passes it (Multus: annotation k8s.v1.cni.cncf.io/resourceName of the network; "
                "others: capability deviceID)");
  }
  const auto address = PciAddress::Parse(config.device_text);
  if (!address) {
    return Fail(ErrorCode::kInvalid,
                "network configuration: /deviceID: '" + config.device_text + "' is no PCI address",
                "for example 0000:43:10.0");
  }
  return *address;
}

std::string IpamConfig(const CniRequest& request, const std::string& ipam_type, const std::string& rail) {
  auto json = nlohmann::json::parse(request.config, nullptr, false);
  auto& ipam = json["ipam"];
  if (!ipam.is_object()) ipam = nlohmann::json::object();
  ipam["type"] = ipam_type;
  if (ipam_type == kOwnIpam && !rail.empty() && !ipam.contains("rail") && !ipam.contains("subnet"))
    ipam["rail"] = rail;
  return json.dump();
}

}  // namespace railhead
