// Accelerators: the node's GPUs and their like, found by their PCI class and vendor.
//
// No driver is asked, so a GPU that a virtual machine uses (vfio-pci) is there too. Base class 03 is a
// display controller (00 VGA, 02 3D, 80 other), 12 a processing accelerator. Source: PCI Code and ID
// Assignment Specification, section 1.4 and 1.19. The vendor decides as well: every server has a VGA
// controller in its management chip.
// Threads: thread-safe; reads sysfs at the call and keeps nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci_address.h"

namespace railhead {

// One kind of accelerator.
struct AcceleratorKind {
  std::uint16_t vendor = 0;
  // Base class and subclass: 0x0302. nullopt: any of 0300, 0302, 0380, 1200.
  std::optional<std::uint16_t> class_code;

  // "10de" or "8086:0380", hexadecimal of either case.
  static std::optional<AcceleratorKind> Parse(const std::string& text);
  bool operator==(const AcceleratorKind&) const = default;
};

// All of NVIDIA and AMD, but of Intel only discrete GPUs. Intel's integrated graphics are VGA controllers
// (0300), its data center GPUs are 0380.
std::vector<AcceleratorKind> DefaultAcceleratorKinds();

struct AcceleratorRules {
  std::vector<AcceleratorKind> kinds = DefaultAcceleratorKinds();
  // Ids of device plugins that nothing else explains.
  std::map<std::string, PciAddress> ids;
};

struct Accelerator {
  PciAddress address;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t class_code = 0;  // 0x0302
  std::string driver;            // "" when unbound
  std::optional<int> numa_node;
  std::string path;  // PciDevice::path
};

// In PCI order, without VFs: the facts of an accelerator hold for its VFs. `others` are functions that are
// known to be something else; on a node with a thousand VFs that saves a thousand reads.
Result<std::vector<Accelerator>> ListAccelerators(const Root& root, const std::vector<AcceleratorKind>& kinds,
                                                  const std::set<PciAddress>& others = {});

// The functions that one of `drivers` has ("nvidia"), VFs too: reads a few functions instead of all.
Result<std::vector<Accelerator>> ListDrivenAccelerators(const Root& root,
                                                        const std::vector<AcceleratorKind>& kinds,
                                                        const std::vector<std::string>& drivers);

}  // namespace railhead
