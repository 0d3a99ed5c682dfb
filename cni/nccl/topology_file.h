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
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/sys/pci.h"

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

// The shape of a topology file: which functions share a switch, in as few nodes as NCCL needs.
//
// NCCL derives distances from the tree of <pci> nodes (src/graph/paths.cc). PIX: two functions below one
// node. PXB: nodes between them. PHB: only the <cpu> in common. SYS: not even that. NCCL does not have NODE:
// other host bridges of a NUMA node are PHB for it, too.
//
// A switch is one node, although PCI has two bridges for it. So a function hangs on the bridge above its
// port. The tree omits a bridge at which no two functions part. In this tree any two functions are as far
// apart as PciPathBetween (netns/sys/pci_path.h) says. All functions of one host bridge hang on one <cpu>:
// the node of the first of them whose NUMA node is known. Threads: pure functions.

struct TopologySwitch {
  std::string path;                    // of the bridge: "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
  std::vector<std::size_t> functions;  // positions in the functions given to TopologyTreeOf
  std::vector<std::size_t> switches;   // positions in TopologyTree::switches
};

// What hangs on a processor.
struct TopologyCpu {
  std::vector<std::size_t> functions;
  std::vector<std::size_t> switches;
};

struct TopologyTree {
  std::map<int, TopologyCpu> cpus;  // by NUMA node; -1: the kernel knows none
  std::vector<TopologySwitch> switches;
};

// `functions` in the order in which they will be listed.
TopologyTree TopologyTreeOf(const std::vector<PciDevice>& functions);

// Attributes of a node's processors and of PCIe links in NCCL's format (src/graph/xml.cc).
//
// Reads /proc/cpuinfo and /sys below `root` at each call. Threads: thread-safe.

// Attributes and values in NCCL's order (ncclTopoGetXmlFromCpu): arch; on x86 also vendor, familyid and
// modelid. NCCL computes the family from CPUID itself: an extended family counts sixteenfold (a Zen 4 is 175,
// not 25). Errors: kUnsupported for a kind of processor that NCCL does not run on.
Result<std::vector<std::pair<std::string, std::string>>> ProcessorAttributes(const Root& root);

// The processors of a NUMA node as a mask: "00000000,ffffffff". Empty if the kernel does not know the node,
// or if the mask is longer than NCCL reads.
Result<std::string> NodeAffinity(const Root& root, int numa_node);

// A link's speed and width as NCCL reads them (src/graph/xml.cc, ncclTopoGetXmlFromSys). Each is the lesser
// of the function's and of the port's above it, by max_link_speed and max_link_width. The maximum counts,
// since idle links run at a lower speed, and a VF has no current speed of its own.
struct PcieLink {
  int generation = 0;  // 1: 2.5 GT/s ... 6: 64 GT/s; 0: sysfs does not say
  int width = 0;       // lanes; 0: sysfs does not say

  bool operator==(const PcieLink&) const = default;
};
Result<PcieLink> ReadPcieLink(const Root& root, const std::string& path);

}  // namespace railhead::nccl
