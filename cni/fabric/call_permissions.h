// What a call may do, by CNI_ARGS and the policy of the node's fabric (cni/fabric/fabric.h).
//
// A call is for a pod if the runtime names one (K8S_POD_NAME or K8S_POD_UID). Any other call is root's own:
// podman, cnitool. It may set every key, and name every device and every file. A node without a fabric has no
// policy: every key stays allowed, as with sriov-cni, whose networks set VLANs and MACs. The doctor (railctl)
// warns of such a node. The author of a network can never choose paths of files.
//
// Errors: kPermission, with the key, the refused network, and how root can allow it. Threads: pure, except
// ReadPermissions, which reads the fabric.
#pragma once

#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "cni/fabric/network_policy.h"
#include "cni/protocol/cni_args.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

class CallPermissions {
 public:
  // `fabric`: the node's own (kFabricPath), also if the network names another.
  CallPermissions(const std::optional<Fabric>& fabric, const std::string& network, const CniArgs& args);

  // `pointer`: the key's place, "/vlan"; `key`: one of RestrictedKeys().
  [[nodiscard]] Result<void> Require(const std::string& key, const std::string& pointer) const;
  [[nodiscard]] Result<void> RequireFabric(const std::string& path, const std::string& pointer) const;
  // Checks all keys of the object `ipam` for railhead-ipam, and the addresses that the runtime requests. Does
  // not check the rail: the caller knows whether it is the device's own.
  [[nodiscard]] Result<void> RequireIpam(const std::string& config, const CniArgs& args) const;
  [[nodiscard]] Result<void> RequireIpamType(const std::string& type) const;
  // `path`: with '/', without the leading "net/": "ipv4/conf/IFNAME/arp_filter". Those of the network's own
  // interface, which IFNAME stands for, and those that kubelet calls safe need no rule. Those of other
  // interfaces, "all" and "default" are root's own calls' alone. Others need a rule in all calls: some
  // sysctls of the kernel affect more than one namespace.
  [[nodiscard]] Result<void> RequireSysctl(const std::string& path, const std::string& pointer) const;

  [[nodiscard]] bool is_pods() const { return is_pods_; }
  // Whether it may name a VF that kubelet did not give to the pod.
  [[nodiscard]] bool any_device() const { return !is_pods_ || may_.any_device; }
  [[nodiscard]] ResetPolicy reset() const { return reset_; }
  // A refusal of `what`, which `allowance` in an entry of policy.networks would allow.
  [[nodiscard]] Error Refusal(const std::string& what, const std::string& allowance) const;

 private:
  bool is_pods_;
  std::string whose_;  // "network rail0 in namespace jobs"
  NetworkPermissions may_;
  ResetPolicy reset_ = ResetPolicy::kTenant;
};

Result<CallPermissions> ReadPermissions(const Root& root, const std::string& network, const CniArgs& args);

}  // namespace railhead
