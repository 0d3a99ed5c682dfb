#include "cni/nccl/topology_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cni/nccl/hardware.h"
#include "cni/nccl/topology_tree.h"
#include "netns/sys/accelerators.h"

namespace railhead::nccl {
namespace {

// NCCL takes a link of unknown speed for 8 GT/s (kvDictPciGen in src/graph/topo.cc), and one of
// unknown width for 16 lanes.
constexpr int kAssumedGeneration = 3;
constexpr int kAssumedWidth = 16;
constexpr std::array<const char*, 7> kSpeeds = {"",
                                                "2.5 GT/s PCIe",
                                                "5.0 GT/s PCIe",
                                                "8.0 GT/s PCIe",
                                                "16.0 GT/s PCIe",
                                                "32.0 GT/s PCIe",
                                                "64.0 GT/s PCIe"};

constexpr unsigned kSwitchBus = 0xff;
constexpr unsigned kNicBus = 0xfe;
constexpr std::size_t kMostMadeUp = 0xff;  // NN of ffff:ff:NN.0

constexpr std::uint32_t kMostDomain = 0xffff;

// A <pci> without others below it.
struct Leaf {
  PciDevice function;
  PcieLink link;
  std::string busid;
  std::string net;  // the RDMA device; empty: an accelerator
};

std::string MadeUp(unsigned bus, std::size_t number) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "ffff:%02x:%02zx.0", bus, number);
  return text.data();
}

std::string ClassText(std::uint32_t class_code) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), "0x%06x", class_code);
  return text.data();
}

Error TooLarge(const std::string& what) {
  return {ErrorCode::kInvalid, "describing the node to NCCL: " + what,
          "switch the topology file off on this node", 0};
}

// NCCL's parser knows no escapes.
Result<void> CheckValue(const std::string& what, const std::string& value) {
  const bool plain = std::ranges::all_of(value, [](char c) { return c >= ' ' && c != '"'; });
  if (plain && value.size() <= kMostTopologyValue) return {};
  return Fail(TooLarge(what + " '" + value + "' has a quote or a control character, or more than " +
                       std::to_string(kMostTopologyValue) + " characters"));
}

Error Missing(const std::string& what, const PciAddress& address) {
  return {ErrorCode::kNotFound,
          "describing the node to NCCL: " + what + " " + address.ToString() + " is not in sysfs",
          "look for the device in dmesg", 0};
}

Result<Leaf> ReadLeaf(const Root& root, const std::string& what, const PciAddress& address) {
  auto function = RH_TRY(ReadPciFunction(root, address));
  if (!function) return Fail(Missing(what, address));
  Leaf leaf;
  leaf.link = RH_TRY(ReadPcieLink(root, function->path));
  leaf.function = *std::move(function);
  leaf.busid = address.ToString();
  return leaf;
}

// The GPUs that NCCL or RCCL may use: those with NVIDIA's or AMD's driver. NVIDIA's driver also has
// NVSwitches and audio devices. If neither driver is loaded: all accelerators of these vendors, for which
// every function of the node is read.
Result<std::vector<PciAddress>> ScanAccelerators(const Root& root) {
  const std::vector<AcceleratorKind> kinds = {{0x10de, std::nullopt}, {0x1002, std::nullopt}};
  auto found = RH_TRY(ListDrivenAccelerators(root, kinds, {"nvidia", "amdgpu"}));
  if (found.empty()) found = RH_TRY(ListAccelerators(root, kinds));
  std::vector<PciAddress> addresses;
  addresses.reserve(found.size());
  for (const Accelerator& accelerator : found) addresses.push_back(accelerator.address);
  return addresses;
}

// The accelerators and the NICs, each in PCI order.
Result<std::vector<Leaf>> ReadLeaves(const Root& root, const TopologyRequest& request) {
  std::vector<Leaf> leaves;
  auto accelerators = request.accelerators ? *request.accelerators : RH_TRY(ScanAccelerators(root));
  std::ranges::sort(accelerators);
  accelerators.erase(std::unique(accelerators.begin(), accelerators.end()), accelerators.end());
  for (const PciAddress& address : accelerators) {
    if (address.domain > kMostDomain) {
      return Fail(ErrorCode::kInvalid,
                  "describing the node to NCCL: it cannot name accelerator " + address.ToString() +
                      ", whose PCI domain has more than four digits",
                  "switch the topology file off on this node");
    }
    leaves.push_back(RH_TRY(ReadLeaf(root, "accelerator", address)));
  }
  auto nics = request.nics;
  std::ranges::sort(nics, [](const TopologyFileNic& a, const TopologyFileNic& b) {
    return std::tie(a.address, a.rdma_device) < std::tie(b.address, b.rdma_device);
  });
  for (const TopologyFileNic& nic : nics) {
    Leaf leaf = RH_TRY(ReadLeaf(root, "NIC", nic.address));
    leaf.net = nic.rdma_device;
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

std::string WithoutLastDigit(const std::string& busid) {
  return busid.substr(0, busid.size() - 1);
}

// Makes up addresses for NICs that NCCL could take for ports of one device, and for those that it could not
// name.
void NameNics(std::vector<Leaf>& leaves) {
  std::map<std::string, int> alike;
  for (const Leaf& leaf : leaves) ++alike[WithoutLastDigit(leaf.busid)];
  std::size_t number = 0;
  for (Leaf& leaf : leaves) {
    if (leaf.net.empty()) continue;
    const bool own = alike[WithoutLastDigit(leaf.busid)] == 1 && leaf.function.address.domain <= kMostDomain;
    if (!own) leaf.busid = MadeUp(kNicBus, ++number);
  }
}

// The rate of all NICs; nullopt if they differ or have none.
std::optional<std::uint32_t> CommonRate(const std::vector<TopologyFileNic>& nics) {
  std::set<std::uint32_t> rates;
  for (const TopologyFileNic& nic : nics) rates.insert(nic.rate_mbps.value_or(0));
  if (rates.size() != 1 || *rates.begin() == 0) return std::nullopt;
  return *rates.begin();
}

class Writer {
 public:
  Writer(const Root& root, const std::vector<Leaf>& leaves, std::optional<std::uint32_t> rate)
      : root_(root), leaves_(leaves), rate_(rate) {
    std::vector<PciDevice> functions;
    functions.reserve(leaves.size());
    for (const Leaf& leaf : leaves) functions.push_back(leaf.function);
    tree_ = TopologyTreeOf(functions);
  }

  Result<std::string> Text() {
    if (tree_.switches.size() > kMostMadeUp)
      return Fail(TooLarge("it has " + std::to_string(tree_.switches.size()) + " PCI switches"));
    const auto processor = RH_TRY(ProcessorAttributes(root_));
    RH_TRY(CountChildren(tree_.cpus.size()));
    text_ = "<system version=\"1\">\n";
    // Processors of an unknown node come last: NCCL puts devices without a place on the first.
    for (const bool known : {true, false}) {
      for (const auto& [node, cpu] : tree_.cpus) {
        if ((node >= 0) == known) RH_TRY(Cpu(node, cpu, processor));
      }
    }
    text_ += "</system>\n";
    if (elements_ > kMostTopologyElements) {
      return Fail(TooLarge("it is " + std::to_string(elements_) + " elements, and NCCL takes " +
                           std::to_string(kMostTopologyElements)));
    }
    return std::move(text_);
  }

 private:
  // NCCL itself writes -1 for an unknown node, and 2.21.5 finds no path from there to another node.
  [[nodiscard]] int NumaId(int node) const {
    const bool alone = tree_.cpus.size() == 1;
    return node >= 0 || alone ? node : tree_.cpus.rbegin()->first + 1;
  }

  Result<void> Cpu(int node, const TopologyCpu& cpu,
                   const std::vector<std::pair<std::string, std::string>>& processor) {
    text_ += "  <cpu numaid=\"" + std::to_string(NumaId(node)) + "\" affinity=\"" +
             RH_TRY(NodeAffinity(root_, node)) + "\"";
    for (const auto& [name, value] : processor) {
      RH_TRY(CheckValue(name, value));
      text_.append(" ").append(name).append("=\"" + value + "\"");
    }
    text_ += ">\n";
    RH_TRY(CountChildren(cpu.functions.size() + cpu.switches.size()));
    for (const std::size_t leaf : cpu.functions) Function(leaves_[leaf], 2);
    for (const std::size_t number : cpu.switches) RH_TRY(Switch(number, 2));
    text_ += "  </cpu>\n";
    return {};
  }

  Result<void> Switch(std::size_t number, std::size_t depth) {
    const TopologySwitch& node = tree_.switches[number];
    Pci(MadeUp(kSwitchBus, number + 1), "0x060400", RH_TRY(ReadPcieLink(root_, node.path)), depth);
    text_ += ">\n";
    RH_TRY(CountChildren(node.functions.size() + node.switches.size()));
    for (const std::size_t leaf : node.functions) Function(leaves_[leaf], depth + 1);
    for (const std::size_t below : node.switches) RH_TRY(Switch(below, depth + 1));
    Indent(depth);
    text_ += "</pci>\n";
    return {};
  }

  void Function(const Leaf& leaf, std::size_t depth) {
    Pci(leaf.busid, ClassText(leaf.function.class_code), leaf.link, depth);
    if (leaf.net.empty()) {
      text_ += "/>\n";
      return;
    }
    elements_ += 2;
    text_ += "><nic><net name=\"" + leaf.net + "\"";
    if (rate_) text_ += " speed=\"" + std::to_string(*rate_) + "\"";
    text_ += "/></nic></pci>\n";
  }

  void Pci(const std::string& busid, const std::string& class_text, const PcieLink& link, std::size_t depth) {
    const auto generation =
        static_cast<std::size_t>(link.generation == 0 ? kAssumedGeneration : link.generation);
    Indent(depth);
    text_ += "<pci busid=\"" + busid + "\" class=\"" + class_text + "\" link_speed=\"" +
             kSpeeds.at(generation) + "\" link_width=\"" +
             std::to_string(link.width == 0 ? kAssumedWidth : link.width) + "\"";
  }

  Result<void> CountChildren(std::size_t count) {
    elements_ += count;
    if (count <= kMostTopologyChildren) return {};
    return Fail(TooLarge(std::to_string(count) + " functions and switches are in one place, and NCCL takes " +
                         std::to_string(kMostTopologyChildren)));
  }

  void Indent(std::size_t depth) { text_.append(2 * depth, ' '); }

  const Root& root_;
  const std::vector<Leaf>& leaves_;
  std::optional<std::uint32_t> rate_;
  TopologyTree tree_;
  std::string text_;
  std::size_t elements_ = 1;  // <system>
};

Result<void> CheckRequest(const TopologyRequest& request) {
  std::set<std::string> names;
  std::set<PciAddress> addresses;
  for (const TopologyFileNic& nic : request.nics) {
    RH_TRY(CheckValue("RDMA device", nic.rdma_device));
    if (!names.insert(nic.rdma_device).second || !addresses.insert(nic.address).second) {
      return Fail(ErrorCode::kInvalid, "describing the node to NCCL: NIC " + nic.address.ToString() + " (" +
                                           nic.rdma_device + ") is named twice");
    }
  }
  if (!names.empty()) return {};
  return Fail(ErrorCode::kInvalid, "describing the node to NCCL: the pod has no NIC");
}

}  // namespace

Result<std::string> TopologyText(const Root& root, const TopologyRequest& request) {
  RH_TRY(CheckRequest(request));
  auto leaves = RH_TRY(ReadLeaves(root, request));
  NameNics(leaves);
  return Writer(root, leaves, CommonRate(request.nics)).Text();
}

}  // namespace railhead::nccl
