// The plan of one ADD: configuration, fabric, allocation record and sysfs
// brought together into what will be done. Nothing is touched.
// Threads: value; Resolve() reads files and asks the host's rtnetlink.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/plugin/config.h"
#include "cni/state/allocation.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"

namespace railhead {

struct AttachPlan {
  PluginConfig config;
  PciDevice device;
  std::string bdf;
  // Of a VF; empty and 0 for a PF.
  std::string pf_bdf;
  std::string pf_name;
  int pf_index = 0;

  Link host_link;                  // as it is now
  std::optional<VfState> host_vf;  // as the PF says now
  VfChange vf_change;              // what to set through the PF
  std::optional<MacAddress> mac;   // for the netdev
  std::optional<int> mtu;

  std::optional<Rail> rail;
  std::uint32_t table = 0;
  std::string ipam_type;  // empty: no address

  std::string rdma_device;  // of the hardware, or the name that soft RoCE shall get; empty: none
  bool soft_roce = false;
  bool handoff = false;           // write one
  bool handoff_required = false;  // and no pod without it
  std::optional<AllocationRecord> allocation;
  std::vector<std::pair<std::string, std::string>> handoff_env;
};

// `host` is rtnetlink of the host's namespace.
Result<AttachPlan> ResolvePlan(const Root& root, RouteApi& host, const PluginConfig& config);

}  // namespace railhead
