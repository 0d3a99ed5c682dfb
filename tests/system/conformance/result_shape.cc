#include "tests/system/conformance/result_shape.h"

#include "netns/base/addresses.h"

namespace railhead::conformance {
namespace {

Result<void> Wrong(const std::string& what, const Json& where) {
  return Fail(ErrorCode::kConflict, what + " in " + where.dump());
}

// The value is absent, a text, or a number that is not negative.
bool IsText(const Json& object, const char* key) {
  return !object.contains(key) || object[key].is_string();
}
bool IsCount(const Json& object, const char* key) {
  return !object.contains(key) || object[key].is_number_unsigned();
}

Result<void> CheckInterface(const Json& interface) {
  if (Text(interface, "name").empty()) return Wrong("an interface without a name", interface);
  if (!IsText(interface, "mac") || !IsText(interface, "sandbox"))
    return Wrong("mac or sandbox is no text", interface);
  const std::string mac = Text(interface, "mac");
  if (!mac.empty() && !MacAddress::Parse(mac)) return Wrong("mac is no MAC address", interface);
  for (const char* key : {"socketPath", "pciID"}) {
    if (!IsText(interface, key)) return Wrong(std::string(key) + " is no text", interface);
  }
  return IsCount(interface, "mtu") ? Result<void>() : Wrong("mtu is no number", interface);
}

Result<void> CheckIp(const Json& ip, const std::string& version, std::size_t interfaces, bool ipam) {
  const auto address = IpPrefix::Parse(Text(ip, "address"));
  if (!address) return Wrong("address is none with a prefix length", ip);
  if (!AtLeast(version, "1.0.0") && Text(ip, "version") != (address->address.IsV4() ? "4" : "6")) {
    return Wrong("version does not say the address' family", ip);
  }
  const std::string gateway = Text(ip, "gateway");
  if (!IsText(ip, "gateway") || (!gateway.empty() && !IpAddress::Parse(gateway))) {
    return Wrong("gateway is no address", ip);
  }
  if (!IsCount(ip, "interface")) return Wrong("interface is no index", ip);
  const auto index = Number(ip, "interface");
  if (ipam && index) return Wrong("an IPAM plugin's address has an interface", ip);
  if (index && static_cast<std::size_t>(*index) >= interfaces)
    return Wrong("interface is not in the list", ip);
  return {};
}

Result<void> CheckRoute(const Json& route) {
  if (!IpPrefix::Parse(Text(route, "dst"))) return Wrong("dst is no prefix", route);
  const std::string gateway = Text(route, "gw");
  if (!IsText(route, "gw") || (!gateway.empty() && !IpAddress::Parse(gateway)))
    return Wrong("gw is no address", route);
  for (const char* key : {"mtu", "advmss", "priority", "table", "scope"}) {
    if (!IsCount(route, key)) return Wrong(std::string(key) + " is no number", route);
  }
  return {};
}

Result<void> CheckDns(const Json& result) {
  const auto dns = result.find("dns");
  if (dns == result.end()) return {};
  if (!dns->is_object()) return Wrong("dns is no object", result);
  for (const char* key : {"nameservers", "search", "options"}) {
    if (!dns->contains(key)) continue;
    if (!(*dns)[key].is_array()) return Wrong(std::string(key) + " is no list", *dns);
    for (const auto& item : (*dns)[key]) {
      if (!item.is_string()) return Wrong(std::string(key) + " has what is no text", *dns);
    }
  }
  return IsText(*dns, "domain") ? Result<void>() : Wrong("domain is no text", *dns);
}

Result<void> CheckLists(const Json& result) {
  for (const char* key : {"interfaces", "ips", "routes"}) {
    if (!result.contains(key)) continue;
    if (!result[key].is_array()) return Wrong(std::string(key) + " is no list", result);
    if (Objects(result, key).size() != result[key].size())
      return Wrong(std::string(key) + " has what is no object", result);
  }
  return {};
}

// 0.1.0 and 0.2.0: one address of each family.
Result<void> CheckOldShape(const Json& result) {
  for (const char* key : {"ip4", "ip6"}) {
    if (!result.contains(key)) continue;
    if (!result[key].is_object() || !IpPrefix::Parse(Text(result[key], "ip"))) {
      return Wrong(std::string(key) + " has no ip with a prefix length", result);
    }
    for (const auto& route : Objects(result[key], "routes")) RH_TRY(CheckRoute(route));
  }
  for (const char* key : {"interfaces", "ips"}) {
    if (result.contains(key)) return Wrong(std::string(key) + " is of a later version", result);
  }
  return CheckDns(result);
}

}  // namespace

Result<void> CheckShape(const Json& result, const std::string& version, bool ipam) {
  if (!result.is_object()) return Wrong("no object", result);
  if (Text(result, "cniVersion") != version)
    return Wrong("cniVersion is not the configuration's " + version, result);
  if (!AtLeast(version, "0.3.0")) return CheckOldShape(result);
  RH_TRY(CheckLists(result));
  const auto interfaces = Objects(result, "interfaces");
  if (ipam && !interfaces.empty()) return Wrong("an IPAM plugin's result has interfaces", result);
  for (const auto& interface : interfaces) RH_TRY(CheckInterface(interface));
  for (const auto& ip : Objects(result, "ips")) RH_TRY(CheckIp(ip, version, interfaces.size(), ipam));
  for (const auto& route : Objects(result, "routes")) RH_TRY(CheckRoute(route));
  return CheckDns(result);
}

std::vector<ResultIp> IpsOf(const Json& result) {
  std::vector<ResultIp> ips;
  for (const auto& ip : Objects(result, "ips")) {
    const auto address = IpPrefix::Parse(Text(ip, "address"));
    if (address) ips.push_back({*address, static_cast<int>(Number(ip, "interface").value_or(-1))});
  }
  return ips;
}

std::optional<std::size_t> FindInterface(const Json& result, const std::string& name,
                                         const std::string& sandbox) {
  const auto interfaces = Objects(result, "interfaces");
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    if (Text(interfaces[i], "name") == name && Text(interfaces[i], "sandbox") == sandbox) return i;
  }
  return std::nullopt;
}

}  // namespace railhead::conformance
