#include "cni/nccl/accelerator_scan.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "cni/nccl/pci_function.h"
#include "netns/base/files.h"

namespace railhead {
namespace {

constexpr std::uint16_t kNvidia = 0x10de;
constexpr std::uint16_t kAmd = 0x1002;
constexpr std::uint32_t kDisplay = 0x03;
constexpr std::uint32_t kProcessing = 0x12;

// Functions have more than that below a driver: NVIDIA's has NVSwitches and audio.
bool IsAccelerator(const PciFunction& function) {
  const std::uint32_t base = function.class_code >> 16;
  return (base == kDisplay || base == kProcessing) && (function.vendor == kNvidia || function.vendor == kAmd);
}

Result<void> CollectFrom(const Root& root, const std::string& directory, std::vector<PciAddress>& found) {
  const auto names = RH_TRY_WRAP(ListDirectory(root.Path(directory)), "looking for accelerators");
  if (!names) return {};
  for (const std::string& name : *names) {
    const auto address = PciAddress::Parse(name);
    if (!address) continue;
    // Most functions of a node are VFs: one read tells that they are none.
    const auto text = RH_TRY(ReadAttribute(root.Path("/sys/bus/pci/devices/") + name + "/class"));
    if (!text || !(text->starts_with("0x03") || text->starts_with("0x12"))) continue;
    const auto function = RH_TRY(ReadPciFunction(root, *address));
    if (function && IsAccelerator(*function)) found.push_back(*address);
  }
  return {};
}

}  // namespace

Result<std::vector<PciAddress>> ScanAccelerators(const Root& root) {
  std::vector<PciAddress> found;
  for (const char* driver : {"nvidia", "amdgpu"}) {
    RH_TRY(CollectFrom(root, std::string("/sys/bus/pci/drivers/") + driver, found));
  }
  if (found.empty()) RH_TRY(CollectFrom(root, "/sys/bus/pci/devices", found));
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace railhead
