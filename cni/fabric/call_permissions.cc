#include "cni/fabric/call_permissions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

// Keys of `ipam` that set the addresses, their owners, and the reuse delay.
constexpr std::array<const char*, 16> kAddressKeys = {"subnet",
                                                      "rangeStart",
                                                      "rangeEnd",
                                                      "ranges",
                                                      "range",
                                                      "range_start",
                                                      "range_end",
                                                      "ipRanges",
                                                      "addresses",
                                                      "node_slice_size",
                                                      "links",
                                                      "reuseDelaySeconds",
                                                      "minReuseDelaySeconds",
                                                      "vf",
                                                      "inUse",
                                                      "inUseConfirmed"};

// Sysctls of one namespace alone, besides those of interfaces: those that kubelet calls safe
// (pkg/kubelet/sysctl/safe_sysctls.go), and the queue length of listening sockets.
constexpr std::array<std::string_view, 12> kSafeSysctls = {"core/somaxconn",
                                                           "ipv4/ip_local_port_range",
                                                           "ipv4/ip_local_reserved_ports",
                                                           "ipv4/ip_unprivileged_port_start",
                                                           "ipv4/ping_group_range",
                                                           "ipv4/tcp_fin_timeout",
                                                           "ipv4/tcp_keepalive_intvl",
                                                           "ipv4/tcp_keepalive_probes",
                                                           "ipv4/tcp_keepalive_time",
                                                           "ipv4/tcp_rmem",
                                                           "ipv4/tcp_syncookies",
                                                           "ipv4/tcp_wmem"};

// As a network writes the name of its interface.
constexpr std::string_view kOwnInterface = "IFNAME";

// net.ipv4|6.conf.NAME.KEY and net.ipv4|6.neigh.NAME.KEY; NAME may be "all" or "default". neigh.default has
// the limits of all namespaces (gc_thresh, net/core/neighbour.c).
bool IsOfInterface(const std::vector<std::string>& parts) {
  static constexpr std::size_t kParts = 4;
  if (parts.size() != kParts || (parts[0] != "ipv4" && parts[0] != "ipv6")) return false;
  return parts[1] == "conf" || (parts[1] == "neigh" && parts[2] != "default");
}

std::string WhoseNetwork(const std::string& network, const CniArgs& args) {
  const auto pod_namespace = PodNamespace(args);
  return "network " + network + (pod_namespace.empty() ? "" : " for pods of namespace " + pod_namespace);
}

std::string Quoted(const std::string& key, const std::string& value) {
  return "\"" + key + "\": [\"" + value + "\"]";
}

}  // namespace

CallPermissions::CallPermissions(const std::optional<Fabric>& fabric, const std::string& network,
                                 const CniArgs& args)
    // Without a fabric, as in sriov-cni: without a UID the pod's devices are unknown.
    : is_pods_(!PodUid(args).empty() || (fabric && !PodName(args).empty())),
      whose_(WhoseNetwork(network, args)) {
  if (fabric) may_ = PermissionsFor(fabric->policy, network, PodNamespace(args));
  if (fabric) reset_ = fabric->policy.reset;
  may_.any_key = !fabric || !is_pods_;
}

Error CallPermissions::Refusal(const std::string& what, const std::string& allowance) const {
  return {
      ErrorCode::kPermission, what + " is not permitted to " + whose_,
      std::string("root permits it with ") + allowance + " in an entry of policy.networks of " + kFabricPath,
      0};
}

Result<void> CallPermissions::Require(const std::string& key, const std::string& pointer) const {
  if (may_.Allows(key)) return {};
  return Fail(Refusal("network configuration: " + pointer + ": it", Quoted("allow", key)));
}

Result<void> CallPermissions::RequireFabric(const std::string& path, const std::string& pointer) const {
  if (!is_pods_ || path == kFabricPath || may_.fabric_paths.contains(path)) return {};
  return Fail(Refusal("network configuration: " + pointer + ": " + path, Quoted("fabrics", path)));
}

Result<void> CallPermissions::RequireIpamType(const std::string& type) const {
  if (may_.any_key || type.empty() || type == kOwnIpam || may_.ipam_types.contains(type)) return {};
  return Fail(Refusal("network configuration: /ipam/type: " + type, Quoted("ipam", type)));
}

Result<void> CallPermissions::RequireSysctl(const std::string& path, const std::string& pointer) const {
  const auto parts = Split(path, '/');
  const bool of_interface = IsOfInterface(parts);
  const bool own = of_interface && (may_.any_key || parts[2] == kOwnInterface);
  if (own || Contains(kSafeSysctls, path)) return {};
  std::string name = "net/" + path;
  const bool plain = path.find('.') == std::string::npos;
  if (may_.sysctls.contains(name)) return {};
  if (plain) std::replace(name.begin(), name.end(), '/', '.');
  if (may_.sysctls.contains(name)) return {};
  Error refused = Refusal("network configuration: " + pointer + ": " + name, Quoted("sysctls", name));
  if (of_interface) refused.hint.insert(0, "IFNAME stands for the network's own interface; ");
  return Fail(std::move(refused));
}

Result<void> CallPermissions::RequireIpam(const std::string& config, const CniArgs& args) const {
  if (const auto ip = args.find("IP"); ip != args.end() && !ip->second.empty())
    RH_TRY(Require("ips", "CNI_ARGS IP"));
  const auto document = RH_TRY(JsonDocument::Parse(config, "network configuration"));
  JsonReader root = document.Root();
  if (auto runtime = root.Object("runtimeConfig"); runtime) {
    if (runtime->Has("ips")) RH_TRY(Require("ips", "/runtimeConfig/ips"));
    if (runtime->Has("ipRanges")) RH_TRY(Require("addresses", "/runtimeConfig/ipRanges"));
  }
  if (auto in_config = root.Object("args"); in_config) {
    auto cni = in_config->Object("cni");
    if (cni && cni->Has("ips")) RH_TRY(Require("ips", "/args/cni/ips"));
  }
  auto ipam = root.Object("ipam");
  if (!ipam) return root.status();
  for (const char* key : kAddressKeys) {
    if (ipam->Has(key)) RH_TRY(Require("addresses", std::string("/ipam/") + key));
  }
  if (ipam->Has("gateway")) RH_TRY(Require("gateway", "/ipam/gateway"));
  if (const auto fabric = ipam->String("fabric"); fabric) RH_TRY(RequireFabric(*fabric, "/ipam/fabric"));
  const auto resolv_conf = ipam->String("resolvConf");
  if (resolv_conf && is_pods_ && !may_.resolv_confs.contains(*resolv_conf)) {
    return Fail(Refusal("network configuration: /ipam/resolvConf: " + *resolv_conf,
                        Quoted("resolvConf", *resolv_conf)));
  }
  return root.status();
}

Result<CallPermissions> ReadPermissions(const Root& root, const std::string& network, const CniArgs& args) {
  return CallPermissions(RH_TRY(ReadFabric(root)), network, args);
}

}  // namespace railhead
