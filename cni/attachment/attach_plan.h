// The plan of one ADD: configuration, fabric, allocation records and sysfs
// brought together into what will be done. Nothing is touched.
// Threads: values; ResolvePlan() reads files and asks the host's rtnetlink.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/devices.h"
#include "cni/attachment/plugin_config.h"
#include "cni/fabric/call_permissions.h"
#include "cni/fabric/fabric.h"
#include "cni/state/allocation.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {

// One device.
struct LinkPlan {
  PciDevice device;
  std::string bdf;
  std::string slot;         // what kubelet gave in its place; "" when it gave the device
  std::string pod_name;     // of the interface in the pod
  bool user_space = false;  // vfio-pci or its like: set up through the PF, not moved
  // Of a VF; empty and 0 for a PF.
  std::string pf_bdf;
  std::string pf_name;
  int pf_index = 0;

  Link host_link;                  // as it is now; of user_space: empty
  DeviceState host_settings;       // of that link, now (ReadHostSettings)
  std::optional<VfState> host_vf;  // as the PF says now
  VfChange vf_change;              // what to set through the PF
  std::optional<MacAddress> mac;   // for the netdev
  std::optional<int> mtu;

  std::optional<Rail> rail;
  std::uint32_t table = 0;

  std::string rdma_device;  // of the hardware, or the name that soft RoCE shall get; empty: none
  bool soft_roce = false;
  bool handoff = false;           // to be in nccl.conf
  bool handoff_required = false;  // and no pod without it
  std::optional<AllocationRecord> allocation;

  [[nodiscard]] std::string RailName() const { return rail ? rail->name : std::string(); }
};

struct AttachPlan {
  PluginConfig config;
  std::vector<LinkPlan> links;             // rail by rail as the fabric lists them, then by address
  std::string ipam_type;                   // empty: no addresses
  int conflict_probe_ms = 0;               // 0: off
  bool for_pod = false;                    // the runtime names one
  bool meet_gateways = false;              // ADD fails unless they answer, with another MAC than the link's
  std::optional<RdmaNetnsMode> rdma_mode;  // that the fabric demands
  HandoffOptions handoff;
};

// `host` is rtnetlink of the host's namespace. kBusy when a device has no
// interface on the host: it is in another namespace or on its way from there; or when a process drives it.
// kPermission when a network asks for another rail than the device's, or for a MAC that belongs to somebody
// else.
Result<AttachPlan> ResolvePlan(const Root& root, RouteApi& host, const CniRequest& request,
                               const PluginConfig& config, const DeviceChoice& choice,
                               const CallPermissions& may);

}  // namespace railhead::attachment
