// The plan of one ADD, made from configuration, fabric, allocation records and sysfs. Nothing is changed.
// Threads: values; ResolvePlan() reads files and asks the host's rtnetlink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/add_call.h"
#include "cni/attachment/plugin_config.h"
#include "cni/fabric/fabric.h"
#include "cni/state/allocation.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {

// One device.
struct DevicePlan {
  // What the journal stores. Only this ADD knows the other fields.
  AttachedDevice record;

  PciDevice function;
  Link link;            // on the host, as it is now; of a user-space driver's device empty
  std::string pf_name;  // of a VF; empty and 0 for a PF
  int pf_index = 0;
  int pf_mtu = 0;
  std::optional<Rail> rail;
  std::uint32_t table = 0;            // the preferred routing table; 0: any
  bool nccl_config_required = false;  // no pod without a place in nccl.conf
  // record.requested has the rail's spoofchk: ADD goes on if the driver refuses it.
  bool spoof_check_of_rail = false;
  std::optional<AllocationRecord> allocation;

  [[nodiscard]] bool SetsVf() const { return function.is_vf && !record.requested.vf.Empty(); }
};

// One run of the IPAM plugin.
struct IpamRun {
  IpamCall call;
  std::vector<std::size_t> devices;  // indices of the plan's devices that get addresses from it
};

struct AttachPlan {
  PluginConfig config;
  std::vector<DevicePlan> devices;  // rail by rail as the fabric lists them, then by address
  std::string ipam_type;            // empty: no addresses
  std::vector<IpamRun> ipam_runs;
  int conflict_probe_ms = 0;               // 0: off
  bool for_pod = false;                    // the runtime names a pod
  bool require_gateways = false;           // ADD fails unless they answer, with another MAC than the link's
  std::optional<RdmaNetnsMode> rdma_mode;  // the fabric's
  NcclConfigOptions nccl_config_options;
};

// `host` is rtnetlink of the host's namespace. A device that a process drives, or whose interface is in
// another namespace, gives kBusy. A network that asks for another rail than the device's gives kPermission. A
// network that asks for the MAC of another device or host gives kConflict.
Result<AttachPlan> ResolvePlan(const Root& root, RouteApi& host, const AddCall& call);

}  // namespace railhead::attachment
