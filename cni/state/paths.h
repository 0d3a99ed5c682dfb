// All paths of Railhead's own state.
//
//   /run/railhead                        gone with the boot
//     attachments/CONTAINER/NETWORK@IFNAME.json   journal
//     locks/NAME.lock                             flock, never removed; of a device: which attachment has it
//     nccl/CONTAINER/nccl.conf, topology.xml      one per sandbox
//     nccl-device/BDF/nccl.conf                   the same, for "deviceNodes": "mount"
//     displaced-names/BDF.json                    own names of a device that has a substitute name
//     tenants/BDF.json                            last tenant of a device
//     rdma-mode                                   RDMA namespace mode at the first ADD
//     reachability.json                           what the probes have found, for railctl
//     fabric-follow.json                          what of a changed fabric waits or is refused, for railctl
//     attach.log                                  timings of the latest ADDs, bounded
//     cdi/railhead-BDF.json                       text of each CDI spec that Railhead wrote
//   /run/cdi/railhead-BDF.json           CDI specs
//   /var/lib/railhead                    outlives boots
//     allocations/DEVICE.json                     what Allocate answered
//     ipam/                                       address store
//     node-index.json                             the index that railheadd has claimed
//   /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint   kubelet's, read only
//   /var/run/k8s.cni.cncf.io/devinfo/{dp,cni}  device-info files, for Multus
//   /var/lib/kubelet/pods/UID            kubelet's, read only: there while the pod is
//   /var/log/pods/NAMESPACE_NAME_UID     kubelet's, read only: the names of pods
//   /var/lib/cni/...                     results that runtimes (libcni, Multus) keep, read only
//
// Names are checked before they come here (CNI ids by cni/protocol, BDFs by
// PciAddress), so no part can leave its directory.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "netns/base/root.h"

namespace railhead::paths {

inline std::string Attachments(const Root& root) {
  return root.Path("/run/railhead/attachments");
}
inline std::string Locks(const Root& root) {
  return root.Path("/run/railhead/locks");
}
inline constexpr std::string_view kLockSuffix = ".lock";
inline std::string Lock(const Root& root, const std::string& name) {
  return Locks(root) + "/" + name + std::string(kLockSuffix);
}
inline std::string NcclConfigDirectory(const Root& root, const std::string& container) {
  return root.Path("/run/railhead/nccl/" + container);
}
inline std::string DeviceNcclConfigDirectory(const Root& root, const std::string& bdf) {
  return root.Path("/run/railhead/nccl-device/" + bdf);
}
inline std::string NcclConfigRoot(const Root& root) {
  return root.Path("/run/railhead/nccl");
}
inline std::string DeviceNcclConfigRoot(const Root& root) {
  return root.Path("/run/railhead/nccl-device");
}
inline std::string DisplacedNames(const Root& root) {
  return root.Path("/run/railhead/displaced-names");
}
inline std::string Tenants(const Root& root) {
  return root.Path("/run/railhead/tenants");
}
inline std::string RdmaMode(const Root& root) {
  return root.Path("/run/railhead/rdma-mode");
}
inline std::string BindSocket(const Root& root) {
  return root.Path("/run/railhead/bind.sock");
}
// Held while a socket with that name is made.
inline std::string BindSocketLock(const Root& root) {
  return Lock(root, "bind-socket");
}
inline constexpr const char* kReachabilityReport = "/run/railhead/reachability.json";
inline std::string AttachLog(const Root& root) {
  return root.Path("/run/railhead/attach.log");
}
inline std::string CdiDirectory(const Root& root) {
  return root.Path("/run/cdi");
}
inline std::string CdiRecords(const Root& root) {
  return root.Path("/run/railhead/cdi");
}
inline std::string CdiSpec(const Root& root, const std::string& bdf) {
  return root.Path("/run/cdi/railhead-" + bdf + ".json");
}
inline std::string Allocations(const Root& root) {
  return root.Path("/var/lib/railhead/allocations");
}
inline std::string KubeletCheckpoint(const Root& root) {
  return root.Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint");
}
inline std::string KubeletPods(const Root& root) {
  return root.Path("/var/lib/kubelet/pods");
}
inline std::string PodLogs(const Root& root) {
  return root.Path("/var/log/pods");
}
inline std::vector<std::string> CniCaches(const Root& root) {
  return {root.Path("/var/lib/cni/results"), root.Path("/var/lib/cni/cache/results"),
          root.Path("/var/lib/cni/multus"), root.Path("/var/lib/cni/multus/results")};
}
inline std::string DeviceInfos(const Root& root) {
  return root.Path("/var/run/k8s.cni.cncf.io/devinfo/dp");
}
// Those that the runtime names for ADD.
inline std::string CniDeviceInfos(const Root& root) {
  return root.Path("/var/run/k8s.cni.cncf.io/devinfo/cni");
}
inline std::string AddressStore(const Root& root) {
  return root.Path("/var/lib/railhead/ipam");
}

}  // namespace railhead::paths
