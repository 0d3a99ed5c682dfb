// What network configurations may do on a node: fabric.json's `policy`, which root owns.
//
// The author of a network (a NetworkAttachmentDefinition, a pod's annotation) is not trusted. Without a rule
// for its network and namespace he may name no VLAN, MAC, address or other key of kRestrictedKeys, no device
// that kubelet did not give to the pod, and no IPAM plugin but railhead-ipam. Network names are chosen by
// their authors: a rule that is meant for some people has to name namespaces, or the cluster's admission has
// to keep others from using the name (manifests/components/admission). Threads: immutable value once read.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace railhead {

// Keys of a network configuration that reach beyond the pod. "ips" is a fixed address that a runtime or a pod
// asks for; "addresses" every key of railhead-ipam that says which addresses there are and how soon they are
// reused.
inline constexpr std::array<std::string_view, 14> kRestrictedKeys = {
    "vlan",        "vlanQoS",     "vlanProto", "mac",  "trust",           "spoofchk", "link_state",
    "min_tx_rate", "max_tx_rate", "gateway",   "rail", "conflictProbeMs", "ips",      "addresses"};

// The IPAM plugin that every network may name.
inline constexpr const char* kOwnIpam = "railhead-ipam";

// One rule; what several rules allow adds up.
struct NetworkRule {
  // Patterns as fnmatch(3) has them; empty: any.
  std::vector<std::string> networks;
  std::vector<std::string> namespaces;
  std::set<std::string> keys;  // of kRestrictedKeys
  bool any_device = false;     // also one that kubelet did not give to the pod; never a PF
  std::set<std::string> ipam_types;
  std::set<std::string> sysctls;       // besides those of interfaces: "net.core.somaxconn"
  std::set<std::string> fabric_paths;  // that the network may name instead of the node's fabric
  std::set<std::string> resolv_confs;  // that railhead-ipam may read for it
};

// When a device is made anew between two pods.
enum class ResetPolicy : std::uint8_t {
  kTenant,  // for a pod of another namespace, or when something of the last pod may be left
  kAlways,
  kNever,
};

struct NetworkPolicy {
  std::vector<NetworkRule> rules;
  ResetPolicy reset = ResetPolicy::kTenant;
};

// What one call may do.
struct NetworkPermissions {
  // Nobody's author: root itself calls (podman, cnitool), or the node has no fabric and so no policy.
  bool any_key = false;
  std::set<std::string> keys;
  bool any_device = false;
  std::set<std::string> ipam_types;
  std::set<std::string> sysctls;
  std::set<std::string> fabric_paths;
  std::set<std::string> resolv_confs;

  [[nodiscard]] bool Allows(std::string_view key) const { return any_key || keys.contains(std::string(key)); }
};

// Of a network of a pod of that namespace.
NetworkPermissions PermissionsFor(const NetworkPolicy& policy, const std::string& network,
                                  const std::string& pod_namespace);

}  // namespace railhead
