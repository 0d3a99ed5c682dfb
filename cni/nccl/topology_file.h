// The topology file: the places of a pod's NICs, for an NCCL that cannot find them in sysfs.
//
// NCCL reads it at kNcclTopologyInContainer without a variable (since 2.10.3). It matches GPUs by address and
// NICs by the name of their RDMA device, and keeps the place that the file gives them. It finds everything
// else (NVLink, the GPUs' kind, GPUDirect) as it does without a file. The file has the node's GPUs and only
// the pod's NICs, each below its switch, on the processors that have any. The same functions give the same
// text in any order: the ranks of a pod compare their files, and differences look like more hardware.
//
// Switches have made-up addresses, ffff:ff:NN.0, which NCCL does not look for in sysfs. NICs whose address
// differs from another function's only in the last digit have made-up addresses, too, ffff:fe:NN.0. Otherwise
// NCCL would take them for ports of one NIC.
//
// Speeds and widths of links come from sysfs. Where sysfs lacks them, the file has what NCCL assumes. The
// file has `speed` only if all NICs are limited to the same rate. NCCL selects NICs by bandwidth before
// distance: with unequal rates a GPU would use another rail's NIC.
//
// The limits below are those at which NCCL stops or crashes. The tests check all rules of the format on nodes
// of any shape (tests/support/nccl/topology_rules.h).
//
// Reads below /sys and /proc of `root` at the call; writes only the requested file. Threads: thread-safe for
// different files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"

namespace railhead::nccl {

inline constexpr const char* kNcclTopologyInContainer = "/var/run/nvidia-topologyd/virtualTopology.xml";

// MAX_STR_LEN of src/graph/xml.h, less its terminator and the closing quote.
inline constexpr std::size_t kMostTopologyValue = 253;
// NCCL_TOPO_XML_MAX_NODES, less the one that its parser wants free to go on.
inline constexpr std::size_t kMostTopologyElements = 255;
// MAX_SUBS up to 2.27.7.
inline constexpr std::size_t kMostTopologyChildren = 128;

struct TopologyFileNic {
  std::string rdma_device;
  PciAddress address;
  std::optional<std::uint32_t> rate_mbps;  // the limit of what it sends; nullopt or 0: none
};

struct TopologyRequest {
  std::vector<TopologyFileNic> nics;  // all of the pod's that NCCL may use
  // nullopt: the devices of the drivers nvidia and amdgpu. Without such a driver: display controllers and
  // processing accelerators of these vendors.
  std::optional<std::vector<PciAddress>> accelerators;
};

// kNotFound when a NIC is not in sysfs; kInvalid when the format cannot express the request or the node.
Result<std::string> TopologyText(const Root& root, const TopologyRequest& request);

}  // namespace railhead::nccl
