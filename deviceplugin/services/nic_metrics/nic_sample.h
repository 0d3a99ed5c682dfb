// What one NIC has counted, and whose it is: a PF of a pool, or a PF or VF in a pod.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/services/nic_metrics/pause_counters.h"
#include "netns/nl/counters.h"

namespace railhead {

struct NicOwner {
  AttachmentKey attachment;
  std::string pod;  // "": the runtime did not say
  std::string pod_namespace;
  std::string interface;  // in the pod
  bool handoff = false;   // NCCL was told about it
};

struct NicSample {
  std::string device;  // PCI address, or the name on the auxiliary bus
  std::string pf;      // its PF's network device, or its own; "" unknown
  std::optional<int> vf;
  std::string rail;  // "": of no rail that the fabric names
  std::optional<int> numa_node;
  std::string driver;
  std::string resource;           // "railhead.io/roce"; "": in no pool
  std::optional<NicOwner> owner;  // nullopt: in no pod

  // Its own network device's; nullopt: there is none (a user-space driver), or it is gone meanwhile.
  std::optional<Traffic> traffic;
  bool carrier = false;
  std::uint64_t carrier_changes = 0;
  // Of a VF, as its PF's driver counts: with RDMA, where the driver sees it (mlx5). nullopt: it does not
  // count.
  std::optional<Traffic> by_pf;
  // Of PFs that are here.
  std::optional<std::uint64_t> speed;  // bytes per second; nullopt: no link
  std::vector<PriorityCount> priorities;

  std::string rdma_device;  // "": none
  bool rdma_seen = false;   // the kernel tells of it; the two below say something
  bool rdma_active = false;
  NamedCounters rdma;
};

}  // namespace railhead
