// The plan of one ADD: configuration, fabric, allocation records and sysfs
// brought together into what will be done. Nothing is touched.
// Threads: values; ResolvePlan() reads files and asks the host's rtnetlink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/devices.h"
#include "cni/attachment/plugin_config.h"
#include "cni/attachment/pod_network.h"
#include "cni/fabric/call_permissions.h"
#include "cni/fabric/fabric.h"
#include "cni/state/allocation.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

namespace railhead::attachment {

// One device.
struct DevicePlan {
  // What the journal will have of it. The rest is known to this ADD only.
  AttachedDevice record;

  PciDevice function;
  Link link;            // on the host, as it is now; of a user-space driver's device empty
  std::string pf_name;  // of a VF; empty and 0 for a PF
  int pf_index = 0;
  std::optional<Rail> rail;
  std::uint32_t table = 0;        // that is preferred; 0: any
  bool handoff_required = false;  // no pod without a place in nccl.conf
  std::optional<AllocationRecord> allocation;

  [[nodiscard]] bool SetsVf() const { return function.is_vf && !record.wanted.vf.Empty(); }
};

// One run of the IPAM plugin.
struct IpamRun {
  IpamCall call;
  std::vector<std::size_t> devices;  // of the plan, that it gives addresses to
};

struct AttachPlan {
  PluginConfig config;
  std::vector<DevicePlan> devices;  // rail by rail as the fabric lists them, then by address
  std::string ipam_type;            // empty: no addresses
  std::vector<IpamRun> ipam_runs;
  int conflict_probe_ms = 0;               // 0: off
  bool for_pod = false;                    // the runtime names one
  bool meet_gateways = false;              // ADD fails unless they answer, with another MAC than the link's
  std::optional<RdmaNetnsMode> rdma_mode;  // that the fabric demands
  HandoffOptions handoff;
};

// What one ADD has read before it touches anything: each file once.
struct AddCall {
  const CniRequest& request;
  PluginConfig config;
  std::optional<Fabric> node_fabric;  // kFabricPath, whichever the network names
  CallPermissions may;
  DeviceChoice choice;
};

// kPermission, kInvalid with the field; see ReadPluginConfig(), CheckPermissions() and ChooseDevices().
Result<AddCall> ReadAddCall(const Root& root, const CniRequest& request);

// `host` is rtnetlink of the host's namespace. kBusy when a device has no
// interface on the host: it is in another namespace or on its way from there; or when a process drives it.
// kPermission when a network asks for another rail than the device's, or for a MAC that belongs to somebody
// else.
Result<AttachPlan> ResolvePlan(const Root& root, RouteApi& host, const AddCall& call);

// A device as it is on the host. Its function, link and VF are known.
Result<void> DescribeOnHost(const Root& root, DevicePlan& plan);

// Reads the drivers' settings of the devices that will be moved. One reading serves all attempts of an ADD:
// an attempt that is undone leaves them as they were.
Result<void> ReadDriverSettings(Kernel& kernel, const PodNetwork& network, AttachPlan& plan);

// The journal entry before addresses are known: enough to restore every device. Says in the plan which RDMA
// devices are moved.
Result<JournalEntry> DescribeAttachment(const Root& root, Kernel& kernel, const PodNetwork& network,
                                        const CniRequest& request, AttachPlan& plan);

}  // namespace railhead::attachment
