#include "cni/nccl/hardware.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <string_view>

#include "cni/nccl/hardware.h"
#include "cni/nccl/topology_file.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead::nccl {
namespace {

constexpr const char* kCpuinfo = "/proc/cpuinfo";

// The first processor's lines are enough; the whole file is half a megabyte on a big node.
constexpr std::size_t kFirstProcessor = 4096;

constexpr std::int64_t kBaseFamilies = 15;  // families above are 15 and an extended family

using Fields = std::map<std::string, std::string>;

// "cpu family\t" as "cpu family".
std::string WithoutBlanks(std::string name) {
  name.erase(name.find_last_not_of(" \t") + 1);
  return name;
}

Result<Fields> FirstProcessor(const Root& root) {
  const std::string path = root.Path(kCpuinfo);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return FailSys(errno, "opening " + path);
  std::array<char, kFirstProcessor> buffer{};
  const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
  if (size < 0) return FailSys(errno, "reading " + path);
  Fields fields;
  for (const std::string& line : Split({buffer.data(), static_cast<std::size_t>(size)}, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    // One blank after the colon; more are the vendor's: "  Shanghai  ".
    const bool blank = line.substr(colon + 1, 1) == " ";
    fields.emplace(WithoutBlanks(line.substr(0, colon)), line.substr(colon + (blank ? 2 : 1)));
  }
  return fields;
}

std::int64_t NumberIn(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? 0 : ParseInt(found->second).value_or(0);
}

// PCI Express Base Specification, section 7.5.3.6: the widths that a link can have.
constexpr int kWidest = 32;

// pci_speed_string() of the kernel (drivers/pci/probe.c): "32.0 GT/s PCIe"; before Linux 5.7
// "32 GT/s"; "Unknown".
int GenerationOf(std::string_view text) {
  constexpr std::array<std::string_view, 6> kSpeeds = {"2.5", "5", "8", "16", "32", "64"};
  std::string_view number = text.substr(0, text.find(' '));
  if (number.ends_with(".0")) number.remove_suffix(2);
  const auto found = std::ranges::find(kSpeeds, number);
  return found == kSpeeds.end() ? 0 : static_cast<int>(found - kSpeeds.begin()) + 1;
}

// The lesser of two numbers, each 0 if unknown.
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
    // The kernel writes 255 for unknown.
    const auto lanes = ParseInt(*width);
    if (lanes && *lanes > 0 && *lanes <= kWidest) end.width = static_cast<int>(*lanes);
  }
  return end;
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> ProcessorAttributes(const Root& root) {
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  const Fields fields = RH_TRY_WRAP(FirstProcessor(root), "looking for the processor's kind");
  // arch/arm64/kernel/cpuinfo.c, arch/powerpc/kernel/setup-common.c, arch/x86/kernel/cpu/proc.c.
  if (fields.contains("CPU implementer")) return Attributes{{"arch", "arm64"}};
  if (fields.contains("cpu")) return Attributes{{"arch", "ppc64"}};
  const auto vendor = fields.find("vendor_id");
  if (vendor == fields.end()) {
    return Fail(ErrorCode::kUnsupported,
                std::string(kCpuinfo) + " shows neither an x86 nor an ARM nor a POWER processor",
                "switch the topology file off on this node");
  }
  const std::int64_t family = NumberIn(fields, "cpu family");
  const std::int64_t nccl_family =
      family > kBaseFamilies ? kBaseFamilies + ((family - kBaseFamilies) << 4) : family;
  return Attributes{{"arch", "x86_64"},
                    {"vendor", vendor->second},
                    {"familyid", std::to_string(nccl_family)},
                    {"modelid", std::to_string(NumberIn(fields, "model"))}};
}

Result<std::string> NodeAffinity(const Root& root, int numa_node) {
  if (numa_node < 0) return std::string();
  const std::string path = "/sys/devices/system/node/node" + std::to_string(numa_node) + "/cpumap";
  std::string mask = RH_TRY(ReadAttribute(root.Path(path))).value_or("");
  // The highest processors come first, and absent ones need not be named.
  constexpr std::string_view kNone = "00000000,";
  while (mask.size() > kMostTopologyValue && mask.starts_with(kNone)) mask.erase(0, kNone.size());
  if (mask.size() > kMostTopologyValue) mask.clear();
  return mask;
}

Result<PcieLink> ReadPcieLink(const Root& root, const std::string& path) {
  const PcieLink own = RH_TRY(ReadEnd(root.Path(path)));
  const PcieLink above = RH_TRY(ReadEnd(root.Path(path.substr(0, path.rfind('/')))));
  return PcieLink{Lesser(own.generation, above.generation), Lesser(own.width, above.width)};
}

}  // namespace railhead::nccl
