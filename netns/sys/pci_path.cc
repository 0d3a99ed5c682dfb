#include "netns/sys/pci_path.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"PIX", "PXB", "PHB", "NODE", "SYS"};

// The bridge that both are below, and one more of each side: a switch's downstream port
// and the endpoint.
constexpr std::ptrdiff_t kBelowOneSwitch = 2;

// A path in two parts: everything down to the host bridge, which names it, and
// the bridges and the function below it.
struct Halves {
  std::string_view host;
  std::string_view below;  // "/0000:15:01.0/0000:16:00.0"; without host bridge: the whole path
};

// The last "pciDDDD:BB" counts: Intel VMD puts a host bridge of its own below a function
// (drivers/pci/controller/vmd.c).
Halves Halve(std::string_view path) {
  const auto start = path.rfind("/pci");
  if (start == std::string_view::npos) return {{}, path};
  const auto end = std::min(path.find('/', start + 1), path.size());
  return {path.substr(0, end), path.substr(end)};
}

// "/a/b" has two components.
std::ptrdiff_t Components(std::string_view path) {
  return std::ranges::count(path, '/');
}

// The leading components that both paths have.
std::ptrdiff_t SharedComponents(std::string_view a, std::string_view b) {
  const auto [end_a, end_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto same = static_cast<std::size_t>(end_a - a.begin());
  const bool whole = (end_a == a.end() || *end_a == '/') && (end_b == b.end() || *end_b == '/');
  const auto count = Components(a.substr(0, same));
  // Otherwise the last of them has only begun alike.
  return whole || count == 0 ? count : count - 1;
}

}  // namespace

std::string_view NameOf(PciPath path) {
  return kNames.at(static_cast<std::size_t>(path));
}

std::optional<PciPath> ParsePciPath(std::string_view name) {
  const std::string lower = ToLower(name);
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (lower == ToLower(kNames.at(i))) return static_cast<PciPath>(i);
  }
  return std::nullopt;
}

std::vector<std::string> PartsOfPciPath(std::string_view path) {
  const Halves halves = Halve(path);
  if (halves.host.empty()) return {"", std::string(path.substr(path.rfind('/') + 1))};
  std::vector<std::string> parts = Split(halves.below, '/');
  parts.front() = halves.host;
  return parts;
}

PciPath PciPathBetween(const PciPlace& a, const PciPlace& b) {
  if (a.path == b.path && !a.path.empty()) return PciPath::kPix;
  const Halves left = Halve(a.path);
  const Halves right = Halve(b.path);
  if (left.host.empty() || left.host != right.host) {
    return a.numa_node == b.numa_node ? PciPath::kNode : PciPath::kSys;
  }
  const std::ptrdiff_t shared = SharedComponents(left.below, right.below);
  if (shared == 0) return PciPath::kPhb;
  const std::ptrdiff_t farther = std::max(Components(left.below), Components(right.below)) - shared;
  return farther <= kBelowOneSwitch ? PciPath::kPix : PciPath::kPxb;
}

}  // namespace railhead
