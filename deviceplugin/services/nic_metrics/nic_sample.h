// The counters of one NIC, and its owner: a PF of a pool, or a PF or VF in a pod.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/services/nic_metrics/priority_counters.h"
#include "netns/nl/counters.h"

namespace railhead::nic_metrics {

struct NicOwner {
  AttachmentKey attachment;
  std::string pod;  // "": the runtime did not name it
  std::string pod_namespace;
  std::string interface;     // in the pod
  bool nccl_config = false;  // it is in nccl.conf
};

struct NicSample {
  std::string device;  // PCI address, or the name on the auxiliary bus
  std::string pf;      // its PF's network device, or its own; "" unknown
  std::optional<int> vf;
  std::string rail;  // "": of no rail that the fabric names
  std::optional<int> numa_node;
  std::string driver;
  std::optional<NicOwner> owner;  // nullopt: in no pod

  // From its own network device. nullopt: it has none (a user-space driver), or it has just gone.
  std::optional<Traffic> traffic;
  bool carrier = false;
  std::uint64_t carrier_changes = 0;
  // Of a VF, as its PF's driver counts: with RDMA, where the driver sees it (mlx5). nullopt: the driver does
  // not count.
  std::optional<Traffic> by_pf;
  // Of PFs that are here.
  std::optional<std::uint64_t> speed;  // bytes per second; nullopt: no link
  std::vector<PriorityCount> priorities;

  std::string rdma_device;  // "": none
  bool rdma_seen = false;   // the kernel reports the device, so the two below are valid
  bool rdma_active = false;
  NamedCounters rdma;
};

}  // namespace railhead::nic_metrics
