// PCI functions as far as their place counts: where they hang, and how fast their link is.
//
// FindPciDevice (netns/sys/pci.h) tells more, and of a VF has to look through all VFs of
// its PF for that; the handoff reads a dozen functions within a millisecond.
// Reads below /sys of `root` at each call and keeps nothing. A function that is not
// there is nullopt; an Error means that sysfs could not be read.
// Threads: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/sys/pci_address.h"

namespace railhead {

struct PciFunction {
  PciAddress address;
  std::string path;  // "/sys/devices/pci0000:40/0000:40:01.0/0000:43:00.0", without the root's prefix
  std::uint32_t class_code = 0;  // 24 bits: 0x020000 is an Ethernet controller
  std::uint16_t vendor = 0;
  std::optional<int> numa_node;  // nullopt: the kernel says -1
};

// The directory of a function: where the link /sys/bus/pci/devices/ADDRESS leads.
Result<std::optional<std::string>> PciFunctionPath(const Root& root, const PciAddress& address);
Result<std::optional<PciFunction>> ReadPciFunction(const Root& root, const PciAddress& address);

// A path in its parts: the host bridge's directory ("/sys/devices/pci0000:40"), the bridges
// below it from there downwards, and last the function. Of several host bridges the last one
// counts (Intel VMD); a path without one has an empty first part.
std::vector<std::string> PartsOfPciPath(std::string_view path);

// What a link can do, as NCCL asks for it (src/graph/xml.cc, ncclTopoGetXmlFromSys): the slower
// of the function and of the port above it, by max_link_speed and max_link_width. The maximum,
// since links sleep at a lower speed, and a VF has no current one of its own.
struct PcieLink {
  int generation = 0;  // 1: 2.5 GT/s ... 6: 64 GT/s; 0: sysfs does not say
  int width = 0;       // lanes; 0: sysfs does not say

  bool operator==(const PcieLink&) const = default;
};
Result<PcieLink> ReadPcieLink(const Root& root, const std::string& path);

}  // namespace railhead
