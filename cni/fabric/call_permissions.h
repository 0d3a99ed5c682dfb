// Whose call it is, and what it may do: CNI_ARGS and the policy of the node's fabric (cni/fabric/fabric.h).
//
// A call is a pod's where the runtime names one (K8S_POD_NAME or K8S_POD_UID). Any other is root's own:
// podman, cnitool. It may set every key, name every device and every file. A node without a fabric has no
// policy: a drop-in for sriov-cni, whose networks set VLANs and MACs; these keys stay allowed there, and
// railctl doctor says so. Paths of files are never the author's to choose. Errors: kPermission, with the key,
// whom it was refused to, and where root allows it. Threads: pure, but for ReadPermissions, which reads the
// fabric.
#pragma once

#include <optional>
#include <string>

#include "cni/fabric/fabric.h"
#include "cni/protocol/plugin.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

class CallPermissions {
 public:
  // `fabric`: the node's own (kFabricPath), whichever the network names.
  CallPermissions(const std::optional<Fabric>& fabric, const std::string& network, const CniArgs& args);

  // `pointer` is where the key stands, "/vlan"; `key` one of RestrictedKeys().
  [[nodiscard]] Result<void> Require(const std::string& key, const std::string& pointer) const;
  [[nodiscard]] Result<void> RequireFabric(const std::string& path, const std::string& pointer) const;
  // All that the object `ipam` says to railhead-ipam, and the addresses that the runtime was asked for. A
  // rail is not among it: whether it is the device's own, the caller knows.
  [[nodiscard]] Result<void> RequireIpam(const std::string& config, const CniArgs& args) const;
  [[nodiscard]] Result<void> RequireIpamType(const std::string& type) const;
  // `path` with '/', without the "net/" in front: "ipv4/conf/IFNAME/arp_filter". Whoever calls: some of the
  // kernel's are not of one namespace alone.
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
