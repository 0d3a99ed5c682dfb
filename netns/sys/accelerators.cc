#include "netns/sys/accelerators.h"

#include <algorithm>
#include <array>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead {
namespace {

constexpr const char* kAllFunctions = "/sys/bus/pci/devices";

constexpr std::array<std::uint16_t, 4> kClasses = {0x0300, 0x0302, 0x0380, 0x1200};

constexpr std::uint16_t kNvidia = 0x10de;
constexpr std::uint16_t kAmd = 0x1002;
constexpr std::uint16_t kIntel = 0x8086;

std::optional<std::uint16_t> FourDigits(const std::string& text) {
  const auto value = text.size() == 4 ? ParseHex(text) : std::nullopt;
  return value ? std::optional<std::uint16_t>(static_cast<std::uint16_t>(*value)) : std::nullopt;
}

bool Is(const PciDevice& device, const AcceleratorKind& kind) {
  const auto class_code = static_cast<std::uint16_t>(device.class_code >> 8);
  if (device.vendor != kind.vendor) return false;
  if (kind.class_code) return class_code == *kind.class_code;
  return Contains(kClasses, class_code);
}

// Whether the function's class is one of the wanted ones: a single read, which is the whole cost of most
// functions.
Result<bool> MayBeOne(const Root& root, const PciAddress& address,
                      const std::vector<AcceleratorKind>& kinds) {
  const auto text = RH_TRY(ReadAttribute(root.Path(kAllFunctions) + "/" + address.ToString() + "/class"));
  // "0x030200": damage is for FindPciDevice to report.
  if (!text || text->size() != 8) return text.has_value();
  const auto class_code = FourDigits(text->substr(2, 4));
  if (!class_code) return true;
  return Contains(kClasses, *class_code) || Contains(kinds, class_code, &AcceleratorKind::class_code);
}

// Those among the functions that `directory` lists.
Result<std::vector<PciDevice>> ListIn(const Root& root, const std::string& directory,
                                      const std::vector<AcceleratorKind>& kinds,
                                      const std::set<PciAddress>& others) {
  std::vector<PciDevice> found;
  const auto names = RH_TRY_WRAP(ListDirectory(root.Path(directory)), "looking for accelerators");
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    const auto address = PciAddress::Parse(name);
    if (!address || others.contains(*address) || !RH_TRY(MayBeOne(root, *address, kinds))) continue;
    auto device = RH_TRY_WRAP(ReadPciFunction(root, *address), "looking for accelerators");
    if (device && std::ranges::any_of(kinds, [&](const auto& kind) { return Is(*device, kind); }))
      found.push_back(*std::move(device));
  }
  return found;
}

std::vector<Accelerator> Sorted(const std::vector<PciDevice>& devices) {
  std::vector<Accelerator> accelerators;
  accelerators.reserve(devices.size());
  for (const PciDevice& device : devices) {
    accelerators.push_back({.address = device.address,
                            .vendor = device.vendor,
                            .device = device.device,
                            .class_code = static_cast<std::uint16_t>(device.class_code >> 8),
                            .driver = device.driver.value_or(""),
                            .numa_node = device.numa_node,
                            .path = device.path});
  }
  std::ranges::sort(accelerators,
                    [](const Accelerator& a, const Accelerator& b) { return a.address < b.address; });
  return accelerators;
}

}  // namespace

std::optional<AcceleratorKind> AcceleratorKind::Parse(const std::string& text) {
  const auto parts = Split(text, ':');
  if (parts.size() > 2) return std::nullopt;
  AcceleratorKind kind;
  const auto vendor = FourDigits(parts.front());
  if (!vendor) return std::nullopt;
  kind.vendor = *vendor;
  if (parts.size() == 1) return kind;
  kind.class_code = FourDigits(parts.back());
  return kind.class_code ? std::optional<AcceleratorKind>(kind) : std::nullopt;
}

std::vector<AcceleratorKind> DefaultAcceleratorKinds() {
  return {{kNvidia, std::nullopt}, {kAmd, std::nullopt}, {kIntel, 0x0380}, {kIntel, 0x1200}};
}

Result<std::vector<Accelerator>> ListAccelerators(const Root& root, const std::vector<AcceleratorKind>& kinds,
                                                  const std::set<PciAddress>& others) {
  auto all = RH_TRY(ListIn(root, kAllFunctions, kinds, others));
  std::erase_if(all, [](const PciDevice& device) { return device.is_vf; });
  return Sorted(all);
}

Result<std::vector<Accelerator>> ListDrivenAccelerators(const Root& root,
                                                        const std::vector<AcceleratorKind>& kinds,
                                                        const std::vector<std::string>& drivers) {
  std::vector<PciDevice> all;
  for (const std::string& driver : drivers) {
    for (PciDevice& device : RH_TRY(ListIn(root, "/sys/bus/pci/drivers/" + driver, kinds, {})))
      all.push_back(std::move(device));
  }
  return Sorted(all);
}

}  // namespace railhead
