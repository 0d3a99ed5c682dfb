// The topology file: the places of a pod's NICs, for an NCCL that cannot find them in sysfs.
//
// NCCL reads it at kNcclTopologyInContainer without a variable (since 2.10.3). It matches GPUs by
// address and NICs by the name of their RDMA device, and keeps the place that the file gives them;
// everything else (NVLink, the GPUs' kind, GPUDirect) it finds out as it does without a file.
// In it: the node's GPUs, the pod's NICs and no other, each below its switch, on the
// processors that have any. The same functions give the same text, whatever their order: the ranks
// of a pod compare what they read, and differences are taken for more hardware.
//
// - Switches have made-up addresses, ffff:ff:NN.0, which NCCL does not look for in sysfs. So have
//   NICs whose address differs from another function's in its last digit only, ffff:fe:NN.0: NCCL
//   would take them for ports of one.
// - Speeds and widths of links are sysfs's, without which they are what NCCL takes instead.
// - `speed` is said only when all NICs are limited to the same rate. NCCL selects NICs by bandwidth
//   before it looks at distance: with unequal ones a GPU goes to another rail's NIC.
// The limits below are those at which NCCL stops or crashes. The tests hold all rules of the format against
// what nodes of any shape make of it (tests/support/nccl/topology_rules.h).
//
// Reads below /sys and /proc of `root` at the call; writes nothing but the file asked for.
// Threads: thread-safe for different files.
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
  // nullopt: what is bound to the drivers nvidia and amdgpu; without such a driver, display
  // controllers and processing accelerators of these vendors.
  std::optional<std::vector<PciAddress>> accelerators;
};

// kNotFound when a NIC is not in sysfs; kInvalid when the format cannot express the request or the node.
Result<std::string> TopologyText(const Root& root, const TopologyRequest& request);

// The same into a file, in one step; readable by everyone. `path` as it is on disk.
Result<void> WriteTopologyFile(const Root& root, const std::string& path, const TopologyRequest& request);

// The shape of a topology file: which functions share a switch, in as few nodes as NCCL needs.
//
// NCCL knows five distances and derives them from the tree of <pci> nodes (src/graph/paths.cc): PIX,
// two functions below one node; PXB, nodes between them; PHB, only the <cpu>; SYS, not even that. It
// has no NODE: other host bridges of a NUMA node are PHB for it, too. A switch is one node, though
// PCI has two bridges of it, so a function hangs on the bridge above the port that it is in; a
// bridge that no two of them part at is left out. In this tree each two functions are as far
// apart as PciPathBetween (netns/sys/pci_path.h) says.
// All of one host bridge hang on one <cpu>: that of the first whose NUMA node is known.
// Threads: pure functions.

struct TopologySwitch {
  std::string path;                    // of the bridge: "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
  std::vector<std::size_t> functions;  // positions in what TopologyTreeOf was given
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

// `functions` in the order in which they are to be listed.
TopologyTree TopologyTreeOf(const std::vector<PciDevice>& functions);

// Attributes of a node's processors and of PCIe links in NCCL's format (src/graph/xml.cc).
//
// Reads /proc/cpuinfo and /sys below `root` at each call. Threads: thread-safe.

// Attribute and value, in NCCL's order (ncclTopoGetXmlFromCpu): arch; on x86 also vendor, familyid and
// modelid, which NCCL makes of CPUID itself: an extended family counts there sixteenfold (a Zen 4 is 175, not
// 25). kUnsupported for another kind of processor than NCCL runs on.
Result<std::vector<std::pair<std::string, std::string>>> ProcessorAttributes(const Root& root);

// The processors of a NUMA node as a mask: "00000000,ffffffff". Empty when the kernel knows no such
// node, or when the mask is longer than NCCL reads.
Result<std::string> NodeAffinity(const Root& root, int numa_node);

// What a link can do, as NCCL asks for it (src/graph/xml.cc, ncclTopoGetXmlFromSys): the slower
// of the function and of the port above it, by max_link_speed and max_link_width. The maximum,
// since links sleep at a lower speed, and a VF has no current one of its own.
struct PcieLink {
  int generation = 0;  // 1: 2.5 GT/s ... 6: 64 GT/s; 0: sysfs does not say
  int width = 0;       // lanes; 0: sysfs does not say

  bool operator==(const PcieLink&) const = default;
};
Result<PcieLink> ReadPcieLink(const Root& root, const std::string& path);

}  // namespace railhead::nccl
