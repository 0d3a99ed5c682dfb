// What network configurations may do on a node: fabric.json's `policy`, which root owns.
//
// The author of a network (a NetworkAttachmentDefinition, a pod's annotation) is not trusted. Without a rule
// for the network and its namespace, the network may set no key of RestrictedKeys(), such as VLAN, MAC or
// address. It may name only devices that kubelet allocated to the pod, and railhead-ipam as its only IPAM
// plugin. Authors choose the names of their networks. So a rule for some people must name namespaces, or the
// cluster's admission must refuse the name to others (manifests/components/admission). Threads: immutable
// value once read.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/json/record.h"

namespace railhead {

// Keys of a network configuration that affect more than the pod. "ips": a fixed address that a runtime or a
// pod requests. "addresses": every key of railhead-ipam that sets the addresses and how soon they are reused.
std::set<std::string> RestrictedKeys();

// The IPAM plugin that every network may name.
inline constexpr const char* kOwnIpam = "railhead-ipam";

// One rule. A network may do what any of its rules allows.
struct NetworkRule {
  // Patterns as fnmatch(3) has them; empty: any.
  std::vector<std::string> networks;
  std::vector<std::string> namespaces;
  std::set<std::string> keys;  // of RestrictedKeys(); "*": all of them
  bool any_device = false;     // also a VF that kubelet did not allocate to the pod
  std::set<std::string> ipam_types;
  std::set<std::string> sysctls;       // besides those of interfaces: "net.core.somaxconn"
  std::set<std::string> fabric_paths;  // that the network may name instead of the node's fabric
  std::set<std::string> resolv_confs;  // that railhead-ipam may read for it

  bool operator==(const NetworkRule&) const = default;
};

// When a device is reset between two pods.
enum class ResetPolicy : std::uint8_t {
  kTenant,  // for a pod of another namespace, or when something of the last pod may be left
  kAlways,
  kNever,
};

template <>
struct Names<ResetPolicy> {
  static constexpr std::array kAll = {std::pair{"tenant", ResetPolicy::kTenant},
                                      std::pair{"always", ResetPolicy::kAlways},
                                      std::pair{"never", ResetPolicy::kNever}};
};

struct NetworkPolicy {
  std::vector<NetworkRule> rules;
  ResetPolicy reset = ResetPolicy::kTenant;

  bool operator==(const NetworkPolicy&) const = default;
};

// What one call may do.
struct NetworkPermissions {
  // Root itself calls (podman, cnitool), or the node has no fabric and so no policy.
  bool any_key = false;
  std::set<std::string> keys;
  bool any_device = false;
  std::set<std::string> ipam_types;
  std::set<std::string> sysctls;
  std::set<std::string> fabric_paths;
  std::set<std::string> resolv_confs;

  [[nodiscard]] bool Allows(std::string_view key) const { return any_key || keys.contains(std::string(key)); }
};

// For a network of a pod of that namespace.
NetworkPermissions PermissionsFor(const NetworkPolicy& policy, const std::string& network,
                                  const std::string& pod_namespace);

}  // namespace railhead
