#include "cni/nccl/pci_function.h"

#include <algorithm>
#include <array>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::string_view kDevices = "/devices/";
// PCI Express Base Specification, section 7.5.3.6: the widths that a link can have.
constexpr int kWidest = 32;

// "0x020000" as a number; 0 when the attribute is missing or damaged: then it is nothing
// that anyone looks for.
Result<std::uint32_t> ReadHex(const std::string& path) {
  const auto text = RH_TRY(ReadAttribute(path));
  if (!text || !text->starts_with("0x")) return 0U;
  const auto value = ParseHex(text->substr(2));
  return value && *value <= 0xffffff ? static_cast<std::uint32_t>(*value) : 0U;
}

// pci_speed_string() of the kernel (drivers/pci/probe.c): "32.0 GT/s PCIe"; before Linux 5.7
// "32 GT/s"; "Unknown".
int GenerationOf(std::string_view text) {
  constexpr std::array<std::string_view, 6> kSpeeds = {"2.5", "5", "8", "16", "32", "64"};
  std::string_view number = text.substr(0, text.find(' '));
  if (number.ends_with(".0")) number.remove_suffix(2);
  const auto found = std::find(kSpeeds.begin(), kSpeeds.end(), number);
  return found == kSpeeds.end() ? 0 : static_cast<int>(found - kSpeeds.begin()) + 1;
}

// Of two that may be unknown.
int Lesser(int a, int b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

Result<PcieLink> ReadEnd(const std::string& directory) {
  PcieLink end;
  if (const auto speed = RH_TRY(ReadAttribute(directory + "/max_link_speed")); speed) {
    end.generation = GenerationOf(*speed);
  }
  if (const auto width = RH_TRY(ReadAttribute(directory + "/max_link_width")); width) {
    // 255 is the kernel's word for unknown.
    const auto lanes = ParseInt(*width);
    if (lanes && *lanes > 0 && *lanes <= kWidest) end.width = static_cast<int>(*lanes);
  }
  return end;
}

}  // namespace

Result<std::optional<std::string>> PciFunctionPath(const Root& root, const PciAddress& address) {
  const auto link = RH_TRY(ReadLink(root.Path("/sys/bus/pci/devices/") + address.ToString()));
  // "../../../devices/pci0000:40/..."
  const auto start = link ? link->find(kDevices) : std::string::npos;
  if (start == std::string::npos) return std::nullopt;
  return "/sys" + link->substr(start);
}

Result<std::optional<PciFunction>> ReadPciFunction(const Root& root, const PciAddress& address) {
  auto path = RH_TRY(PciFunctionPath(root, address));
  if (!path) return std::nullopt;
  PciFunction function{.address = address, .path = *std::move(path)};
  const std::string directory = root.Path(function.path);
  function.class_code = RH_TRY(ReadHex(directory + "/class"));
  function.vendor = static_cast<std::uint16_t>(RH_TRY(ReadHex(directory + "/vendor")));
  if (const auto text = RH_TRY(ReadAttribute(directory + "/numa_node")); text) {
    const auto node = ParseInt(*text);
    if (node && *node >= 0 && *node <= INT16_MAX) function.numa_node = static_cast<int>(*node);
  }
  return function;
}

std::vector<std::string> PartsOfPciPath(std::string_view path) {
  std::vector<std::string> parts;
  const auto host = path.rfind("/pci");
  if (host == std::string_view::npos) {
    parts.emplace_back();
    parts.emplace_back(path.substr(path.rfind('/') + 1));
    return parts;
  }
  const auto end = std::min(path.find('/', host + 1), path.size());
  parts.emplace_back(path.substr(0, end));
  if (end == path.size()) return parts;
  for (std::string& part : Split(path.substr(end + 1), '/')) parts.push_back(std::move(part));
  return parts;
}

Result<PcieLink> ReadPcieLink(const Root& root, const std::string& path) {
  const PcieLink own = RH_TRY(ReadEnd(root.Path(path)));
  const PcieLink above = RH_TRY(ReadEnd(root.Path(path.substr(0, path.rfind('/')))));
  return PcieLink{Lesser(own.generation, above.generation), Lesser(own.width, above.width)};
}

}  // namespace railhead
