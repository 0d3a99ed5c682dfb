#include "deviceplugin/tools/topology_view/picture.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "deviceplugin/tools/topology_view/svg.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr int kPadding = 10;
constexpr int kTitleHeight = 20;
constexpr int kLineHeight = 14;
constexpr int kDeviceWidth = 182;
constexpr int kVfSize = 8;
constexpr int kVfStep = 10;
constexpr int kVfsInARow = 16;
constexpr int kRowWidth = 640;  // boxes side by side, before the next row begins
constexpr std::size_t kMostCharacters = 25;

constexpr const char* kStyle =
    "svg{background:#fff}"
    ".t,.h{font:11px monospace;fill:#222}.h{font-weight:bold}"
    "rect{stroke:#666;stroke-width:1}"
    ".numa{fill:#f4f4f4}.host{fill:#e6e9ee}.switch{fill:#fdf3d8}.gpu{fill:#d5eecb}.nic{fill:#d3e4f8}"
    ".free{fill:#fff}.used{fill:#c2410c}";

struct Size {
  int width = 0;
  int height = 0;
};

// A box of the picture: an inner one with children, or a device with lines of text.
struct Box {
  std::string style;
  std::vector<std::string> lines;  // the first is the title
  const std::vector<ReportedVf>* vfs = nullptr;
  std::vector<std::unique_ptr<Box>> children;
  // Found by Measure(), relative to the parent.
  int x = 0;
  int y = 0;
  Size size;
};

// The components of a sysfs path from its host bridge on.
std::vector<std::string> FromHostBridge(const std::string& path) {
  const auto host = path.rfind("/pci");
  return Split(host == std::string::npos ? path : path.substr(host + 1), '/');
}

std::string UseText(const NicUse& use) {
  if (use.in_use) return "in use by a pod";
  if (use.vfs.empty()) return "no VFs";
  return std::to_string(use.InUse()) + " of " + std::to_string(use.vfs.size()) + " VFs in use";
}

class Picture {
 public:
  explicit Picture(const NodeReport& report) : report_(report) {}

  std::string Draw() {
    for (std::size_t i = 0; i < report_.topology->accelerators().size(); ++i) AddAccelerator(i);
    for (std::size_t i = 0; i < report_.topology->nics().size(); ++i) AddNic(i);
    Measure(top_);
    top_.size.width = std::max(top_.size.width, kRowWidth);
    const int legend = top_.size.height;
    for (const auto& numa : top_.children) DrawBox(*numa, 0, kTitleHeight);
    svg_.Text(kPadding, kTitleHeight, "Node " + report_.node, "h");
    DrawLegend(legend + kTitleHeight);
    return svg_.Document(top_.size.width, legend + 3 * kTitleHeight, "PCIe topology of " + report_.node,
                         kStyle);
  }

 private:
  // The box with this key below `parent`, made at its first use.
  Box& Inner(Box& parent, const std::string& key, const char* style, std::string title) {
    Box*& box = inner_[key];
    if (box == nullptr) {
      parent.children.push_back(std::make_unique<Box>());
      box = parent.children.back().get();
      box->style = style;
      box->lines = {std::move(title)};
    }
    return *box;
  }

  // The innermost box around the function at `path`.
  Box& Around(const std::string& path, const std::optional<int>& numa_node) {
    const std::string numa = numa_node ? "NUMA node " + std::to_string(*numa_node) : "NUMA node unknown";
    Box* box = &Inner(top_, numa, "numa", numa);
    const auto parts = FromHostBridge(path);
    std::string key = numa + "/" + path.substr(0, path.rfind("/pci")) + "/" + parts.front();
    box = &Inner(*box, key, "host", "host bridge " + parts.front());
    // Below the host bridge: a root port, then each switch as its upstream and downstream port.
    for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
      key += "/" + parts[i];
      const bool upstream = i % 2 == 0 && i + 2 < parts.size();
      if (upstream) box = &Inner(*box, key, "switch", "PCIe switch " + parts[i]);
    }
    return *box;
  }

  Box& AddDevice(const std::string& path, const std::optional<int>& numa_node, const char* style) {
    Box& around = Around(path, numa_node);
    around.children.push_back(std::make_unique<Box>());
    around.children.back()->style = style;
    return *around.children.back();
  }

  void AddAccelerator(std::size_t i) {
    const Accelerator& one = report_.topology->accelerators()[i];
    Box& box = AddDevice(one.path, one.numa_node, "gpu");
    box.lines = {"GPU" + std::to_string(i), one.address.ToString()};
    if (!report_.uuids[i].empty()) box.lines.push_back(report_.uuids[i]);
  }

  void AddNic(std::size_t i) {
    const TopologyNic& nic = report_.topology->nics()[i];
    const NicUse& use = report_.nics[i];
    Box& box = AddDevice(nic.path, nic.numa_node, "nic");
    box.lines = {"NIC" + std::to_string(i) + " " + nic.netdev,
                 nic.address.ToString() + " " + nic.rdma_device};
    if (!use.rail.empty()) {
      box.lines.push_back("rail " + use.rail +
                          (use.vlan ? " VLAN " + std::to_string(*use.vlan) : std::string()));
    }
    box.lines.push_back(UseText(use));
    box.vfs = &use.vfs;
  }

  static Size DeviceSize(const Box& box) {
    const int vfs = box.vfs == nullptr ? 0 : static_cast<int>(box.vfs->size());
    const int rows = (vfs + kVfsInARow - 1) / kVfsInARow;
    return {kDeviceWidth,
            kPadding + static_cast<int>(box.lines.size()) * kLineHeight + rows * kVfStep + kPadding};
  }

  // Places the children in rows from left to right.
  static void Measure(Box& box) {
    if (box.children.empty()) {
      box.size = DeviceSize(box);
      return;
    }
    int x = kPadding;
    int y = kTitleHeight + kPadding;
    int row_height = 0;
    int width = 0;
    for (const auto& child : box.children) {
      Measure(*child);
      if (x > kPadding && x + child->size.width > kRowWidth * (box.style.empty() ? 2 : 1)) {
        x = kPadding;
        y += row_height + kPadding;
        row_height = 0;
      }
      child->x = x;
      child->y = y;
      x += child->size.width + kPadding;
      width = std::max(width, x);
      row_height = std::max(row_height, child->size.height);
    }
    // A title must fit, too.
    box.size = {std::max(width, kDeviceWidth + 2 * kPadding), y + row_height + kPadding};
  }

  void DrawBox(const Box& box, int x, int y) {
    x += box.x;
    y += box.y;
    svg_.Rectangle({x, y, box.size.width, box.size.height}, box.style, Join(box.lines, ", "));
    int line_y = y + kTitleHeight - 4;
    for (std::size_t i = 0; i < box.lines.size(); ++i) {
      svg_.Text(x + kPadding, line_y, Shortened(box.lines[i], kMostCharacters), i == 0 ? "h" : "t");
      line_y += kLineHeight;
    }
    for (const auto& child : box.children) DrawBox(*child, x, y);
    if (box.vfs != nullptr) DrawVfs(*box.vfs, x + kPadding, line_y - kVfSize + 1);
  }

  void DrawVfs(const std::vector<ReportedVf>& vfs, int x, int y) {
    for (std::size_t i = 0; i < vfs.size(); ++i) {
      const auto column = static_cast<int>(i) % kVfsInARow;
      const auto row = static_cast<int>(i) / kVfsInARow;
      const ReportedVf& vf = vfs[i];
      svg_.Rectangle({x + column * kVfStep, y + row * kVfStep, kVfSize, kVfSize}, vf.in_use ? "used" : "free",
                     "VF " + std::to_string(vf.index) + ", " + vf.id + (vf.in_use ? ", in use" : ", free"));
    }
  }

  void DrawLegend(int y) {
    svg_.Rectangle({kPadding, y, kVfSize, kVfSize}, "free");
    svg_.Text(kPadding + 14, y + kVfSize, "VF free");
    svg_.Rectangle({kPadding + 90, y, kVfSize, kVfSize}, "used");
    svg_.Text(kPadding + 104, y + kVfSize, "VF in use");
  }

  const NodeReport& report_;
  Box top_;
  std::map<std::string, Box*> inner_;
  Svg svg_;
};

}  // namespace

std::string DrawNode(const NodeReport& report) {
  return Picture(report).Draw();
}

}  // namespace railhead
