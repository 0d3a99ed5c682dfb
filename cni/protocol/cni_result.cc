#include "cni/protocol/cni_result.h"

#include <algorithm>
#include <array>
#include <climits>
#include <nlohmann/json.hpp>
#include <utility>

#include "netns/base/text.h"

namespace railhead {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::optional<int> SmallInt(JsonReader& reader, const std::string& key) {
  const auto value = reader.Int(key, 0, INT_MAX);
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

std::optional<IpAddress> Address(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text || text->empty()) return std::nullopt;
  auto address = IpAddress::Parse(*text);
  if (!address) reader.Fail(key, "'" + *text + "' is not an IP address");
  return address;
}

IpPrefix Prefix(JsonReader& reader, const std::string& key) {
  const std::string text = reader.RequiredString(key);
  const auto prefix = IpPrefix::Parse(text);
  if (!prefix) reader.Fail(key, "'" + text + "' is not an address with prefix length");
  return prefix.value_or(IpPrefix{});
}

void SetIf(OrderedJson& json, const char* key, const std::optional<int>& value) {
  if (value) json[key] = *value;
}

OrderedJson InterfaceJson(const CniInterface& interface, bool v11) {
  OrderedJson json;
  json["name"] = interface.name;
  if (!interface.mac.empty()) json["mac"] = interface.mac;
  if (v11) SetIf(json, "mtu", interface.mtu);
  if (!interface.sandbox.empty()) json["sandbox"] = interface.sandbox;
  if (v11 && !interface.pci_id.empty()) json["pciID"] = interface.pci_id;
  if (v11 && !interface.socket_path.empty()) json["socketPath"] = interface.socket_path;
  return json;
}

OrderedJson IpJson(const CniIp& ip, bool with_version) {
  OrderedJson json;
  if (with_version) json["version"] = ip.address.address.IsV6() ? "6" : "4";
  SetIf(json, "interface", ip.interface);
  json["address"] = ip.address.ToString();
  if (ip.gateway) json["gateway"] = ip.gateway->ToString();
  return json;
}

OrderedJson RouteJson(const CniRoute& route, bool v11) {
  OrderedJson json;
  json["dst"] = route.destination.ToString();
  if (route.gateway) json["gw"] = route.gateway->ToString();
  if (v11) {
    SetIf(json, "mtu", route.mtu);
    SetIf(json, "advmss", route.advmss);
    SetIf(json, "priority", route.priority);
    SetIf(json, "table", route.table);
    SetIf(json, "scope", route.scope);
  }
  return json;
}

}  // namespace

const std::vector<std::string>& SupportedCniVersions() {
  static const std::vector<std::string> versions = {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};
  return versions;
}

bool IsSupportedCniVersion(const std::string& version) {
  const auto& versions = SupportedCniVersions();
  return Contains(versions, version);
}

Result<CniResult> ParseCniResult(const std::string& text, const std::string& what) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what));
  JsonReader reader = document.Root();
  CniResult result;
  for (JsonReader& item : reader.Objects("interfaces")) {
    result.interfaces.push_back({item.String("name").value_or(""), item.String("mac").value_or(""),
                                 item.String("sandbox").value_or(""), SmallInt(item, "mtu"),
                                 item.String("pciID").value_or(""), item.String("socketPath").value_or("")});
  }
  for (JsonReader& item : reader.Objects("ips")) {
    result.ips.push_back({Prefix(item, "address"), Address(item, "gateway"), SmallInt(item, "interface")});
  }
  for (JsonReader& item : reader.Objects("routes")) {
    result.routes.push_back({Prefix(item, "dst"), Address(item, "gw"), SmallInt(item, "mtu"),
                             SmallInt(item, "advmss"), SmallInt(item, "priority"), SmallInt(item, "table"),
                             SmallInt(item, "scope")});
  }
  if (const auto* dns = reader.Raw("dns"); dns != nullptr && dns->is_object() && !dns->empty()) {
    result.dns = dns->dump();
  }
  RH_TRY(reader.status());
  return result;
}

std::string CniResultJson(const CniResult& result, const std::string& cni_version) {
  const bool v11 = cni_version == "1.1.0";
  const bool with_version = cni_version.starts_with("0.");
  OrderedJson json;
  json["cniVersion"] = cni_version;
  if (!result.interfaces.empty()) {
    for (const auto& interface : result.interfaces)
      json["interfaces"].push_back(InterfaceJson(interface, v11));
  }
  for (const auto& ip : result.ips) json["ips"].push_back(IpJson(ip, with_version));
  for (const auto& route : result.routes) json["routes"].push_back(RouteJson(route, v11));
  json["dns"] = result.dns.empty() ? OrderedJson::object() : OrderedJson::parse(result.dns, nullptr, false);
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

namespace {

constexpr std::array<std::pair<ErrorCode, int>, 15> kCodes{{
    {ErrorCode::kMalformed, kCniDecode},
    {ErrorCode::kInvalid, kCniInvalidConfig},
    {ErrorCode::kNamespace, kCniInvalidNetns},
    {ErrorCode::kBusy, kCniTryAgainLater},
    {ErrorCode::kTimeout, kCniTryAgainLater},
    {ErrorCode::kIo, kCniIo},
    {ErrorCode::kNotFound, kCniNotFound},
    {ErrorCode::kExists, kCniExists},
    {ErrorCode::kUnsupported, kCniUnsupported},
    {ErrorCode::kPermission, kCniPermission},
    {ErrorCode::kExhausted, kCniExhausted},
    {ErrorCode::kConflict, kCniConflict},
    {ErrorCode::kInternal, kCniInternal},
    {ErrorCode::kUnavailable, kCniUnavailable},
    {ErrorCode::kLimited, kCniLimited},
}};

// Names from configurations appear in messages, which runtimes print and log unchanged.
std::string MadeSafe(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);  // char has no sign on arm64
    if (byte < ' ' || byte == 0x7f) c = '?';
  }
  return text;
}

}  // namespace

int CniCodeOf(ErrorCode code) {
  for (const auto& [ours, cni] : kCodes) {
    if (ours == code) return cni;
  }
  return kCniInternal;
}

ErrorCode ErrorCodeOfCni(int cni_code) {
  if (cni_code == kCniIncompatibleVersion || cni_code == kCniUnsupportedField) return ErrorCode::kUnsupported;
  if (cni_code == kCniBadEnvironment) return ErrorCode::kInvalid;
  for (const auto& [ours, cni] : kCodes) {
    if (cni == cni_code) return ours;
  }
  return ErrorCode::kIo;
}

std::string CniErrorJson(const std::string& cni_version, int code, const std::string& msg,
                         const std::string& details) {
  nlohmann::ordered_json json;
  json["cniVersion"] = cni_version;
  json["code"] = code;
  json["msg"] = MadeSafe(msg);
  if (!details.empty()) json["details"] = MadeSafe(details);
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace railhead
