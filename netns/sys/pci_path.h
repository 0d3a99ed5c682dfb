// How far two PCI functions are apart, in the words of NCCL and `nvidia-smi topo`.
//
// Peer-to-peer traffic (GPUDirect RDMA) is as good as the bridges on its way. So the class follows from the
// point where the sysfs paths of the two functions part.
//   PIX   below the same bridge, each at most one bridge further down: two endpoints on one
//         PCIe switch, or functions of one device.
//   PXB   below the same bridge, but more bridges between: several switches, no host bridge.
//   PHB   only the host bridge (pciDDDD:BB) is shared: through the root complex.
//   NODE  different host bridges of one NUMA node.
//   SYS   else: through the interconnect between sockets.
// Sources: the legend of `nvidia-smi topo -m` for the words; NCCL's src/graph/xml.cc and src/graph/paths.cc.
// The first (ncclTopoGetXmlFromSys) climbs the same paths two components per switch: its upstream and its
// downstream port. The second tells one switch from several. By default NCCL uses GPUDirect up to PXB.
// A VF's parent in sysfs is its PF's parent (drivers/pci/iov.c), so both give the same class.
//
// A NUMA node that the kernel does not know (-1) is a node of its own, and two unknown ones are the same.
// Firmware that reports no node mostly has one, and NCCL compares likewise.
// Virtual machines and coherent links (C2C) show paths that are not the truth: see the override file of
// deviceplugin/node/topology.
// Threads: pure functions over values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/sys/pci.h"

namespace railhead {

// From near to far.
enum class PciPath : std::uint8_t { kPix, kPxb, kPhb, kNode, kSys };

constexpr bool Nearer(PciPath a, PciPath b) {
  return static_cast<std::uint8_t>(a) < static_cast<std::uint8_t>(b);
}

// "PIX", ...
std::string_view NameOf(PciPath path);
// Of either case.
std::optional<PciPath> ParsePciPath(std::string_view name);

// Where a function is. `path` is PciDevice::path, owned by the caller.
struct PciPlace {
  std::string_view path;
  std::optional<int> numa_node;
};
inline PciPlace PlaceOf(const PciDevice& device) {
  return {device.path, device.numa_node};
}

// A path in its parts: the host bridge's directory ("/sys/devices/pci0000:40"), the bridges
// below it from there downwards, and last the function. Of several host bridges the last one
// counts (Intel VMD); a path without one has an empty first part.
std::vector<std::string> PartsOfPciPath(std::string_view path);

// Symmetric. Of a function and itself: kPix.
PciPath PciPathBetween(const PciPlace& a, const PciPlace& b);

}  // namespace railhead
