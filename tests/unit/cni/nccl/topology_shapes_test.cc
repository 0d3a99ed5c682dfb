// Random nodes. The written file keeps the rules, and NCCL finds every NIC as far from every GPU as the
// devices are.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "cni/nccl/topology_file.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"
#include "tests/support/nccl/nccl_model.h"
#include "tests/support/nccl/node.h"
#include "tests/support/nccl/topology_rules.h"
#include "tests/support/rapidcheck.h"

namespace railhead::testing {
namespace {

// Keeps the file below NCCL's limits.
constexpr std::size_t kEnough = 36;

int Chance(int least, int most) {
  return *rc::gen::inRange(least, most + 1);
}

// What PCI Express allows: below a port either the functions of one device, or one switch.
class RandomNode {
 public:
  explicit RandomNode(FakeSysfs& sysfs) : sysfs_(sysfs) {
    const int hosts = Chance(1, 4);
    for (int host = 0; host < hosts; ++host) Host(host);
    // There is always one that the file is for.
    if (nics_.empty()) AddNic({At(hosts, 0, "01.0")}, At(hosts, 1, "00.0"), 0);
    Finish(sysfs_, 2, Chance(0, 1) == 0 ? Processor::kXeon : Processor::kGrace);
  }

  [[nodiscard]] const std::vector<nccl::TopologyFileNic>& nics() const { return nics_; }
  [[nodiscard]] const std::vector<std::string>& gpus() const { return gpus_; }

 private:
  using Bridges = std::vector<std::string>;

  static std::string Hex(int value, const char* format) {
    std::array<char, 16> text{};
    (void)std::snprintf(text.data(), text.size(), format, static_cast<unsigned>(value));
    return text.data();
  }
  // "0003:1a:" and what follows.
  static std::string At(int domain, int bus, const std::string& rest) {
    return Hex(domain, "%04x") + ":" + Hex(bus, "%02x") + ":" + rest;
  }

  // A domain each, which saves counting buses.
  void Host(int domain) {
    bus_ = 0;
    const int numa = Chance(-1, 1);
    const int ports = Chance(1, 4);
    for (int port = 0; port < ports; ++port) {
      Below({At(domain, 0, Hex(port + 1, "%02x") + ".0")}, domain, numa, 0);
    }
    if (Chance(0, 3) == 0) OnTheRootBus(domain, numa);
  }

  void OnTheRootBus(int domain, int numa) {
    const std::string root = "pci" + Hex(domain, "%04x") + ":00";
    Gpu({root}, At(domain, 0, "10.0"), numa);
    AddNic({root}, At(domain, 0, "11.0"), numa);
  }

  void Below(const Bridges& bridges, int domain, int numa, int depth) {
    if (nics_.size() + gpus_.size() > kEnough) return;
    if (depth < 2 && Chance(0, 2) > 0) {
      Bridges upstream = bridges;
      upstream.push_back(At(domain, ++bus_, "00.0"));
      const int inside = ++bus_;
      const int ports = Chance(1, 3);
      for (int port = 0; port < ports; ++port) {
        Bridges downstream = upstream;
        downstream.push_back(At(domain, inside, Hex(port, "%02x") + ".0"));
        Below(downstream, domain, numa, depth + 1);
      }
      return;
    }
    const int bus = ++bus_;
    switch (Chance(0, 3)) {
      case 0:
        return Gpu(bridges, At(domain, bus, "00.0"), numa);
      case 1:  // a card with both
        Gpu(bridges, At(domain, bus, "00.0"), numa);
        return AddNic(bridges, At(domain, bus, "00.1"), numa);
      default:
        return Nic(bridges, domain, bus, numa);
    }
  }

  void Gpu(const Bridges& bridges, const std::string& address, int numa) {
    sysfs_.AddAccelerator({.address = address, .numa_node = numa, .bridges = bridges});
    gpus_.push_back(address);
  }
  void AddNic(const Bridges& bridges, const std::string& address, int numa) {
    sysfs_.AddPf({.address = address, .netdev = "", .numa_node = numa, .total_vfs = 8, .bridges = bridges});
    Take(address);
  }
  void Take(const std::string& address) {
    nics_.push_back({"mlx5_" + std::to_string(nics_.size()), AddressOf(address), std::nullopt});
  }

  // One or two ports. The pod gets a PF, VFs, or neither.
  void Nic(const Bridges& bridges, int domain, int bus, int numa) {
    const int ports = Chance(1, 2);
    for (int port = 0; port < ports; ++port) {
      const std::string pf = At(domain, bus, "00." + std::to_string(port));
      sysfs_.AddPf({.address = pf, .netdev = "", .numa_node = numa, .bridges = bridges});
      const int kind = Chance(0, 3);
      if (kind == 0) Take(pf);
      if (kind < 2) continue;
      const int offset = Chance(0, 1) == 0 ? 8 : 0x6000;  // on this bus, or on one that nobody has
      const auto vfs = sysfs_.AddVfs(pf, 3, {.netdev = "", .offset = offset + 4 * port});
      for (int vf = 0; vf < kind - 1; ++vf) Take(vfs[static_cast<std::size_t>(vf)]);
    }
  }

  FakeSysfs& sysfs_;
  std::vector<nccl::TopologyFileNic> nics_;
  std::vector<std::string> gpus_;
  int bus_ = 0;
};

PciDevice Find(const FakeSysfs& sysfs, const PciAddress& address) {
  const auto device = FindPciDevice(sysfs.root(), address);
  RC_ASSERT(device && device->has_value());
  return **device;
}

TEST(TopologyShapesTest, EveryNodeIsDescribedAsItIs) {
  ExpectProperty([] {
    FakeSysfs sysfs;
    const RandomNode node(sysfs);
    const auto text = nccl::TopologyText(sysfs.root(), {node.nics(), std::nullopt});
    if (!text) RC_FAIL(Describe(text.error()));
    RC_ASSERT(TopologyViolations(*text).empty());
    auto nics = node.nics();
    std::reverse(nics.begin(), nics.end());
    RC_ASSERT(nccl::TopologyText(sysfs.root(), {nics, std::nullopt}).value_or("") == *text);
    const auto nccl = NcclModel::Load(*text);
    RC_ASSERT(nccl.has_value());
    auto gpus = nccl->Gpus();
    std::sort(gpus.begin(), gpus.end());
    auto expected_gpus = node.gpus();
    std::sort(expected_gpus.begin(), expected_gpus.end());
    RC_ASSERT(gpus == expected_gpus);
    RC_ASSERT(nccl->Nets().size() == node.nics().size());
    for (const nccl::TopologyFileNic& nic : node.nics()) {
      const PciDevice device = Find(sysfs, nic.address);
      for (const std::string& gpu : node.gpus()) {
        const PciDevice accelerator = Find(sysfs, AddressOf(gpu));
        const PciPath path = PciPathBetween(PlaceOf(device), PlaceOf(accelerator));
        const std::string expected(NameOf(path == PciPath::kNode ? PciPath::kPhb : path));
        const std::string seen = nccl->PathBetween(nic.rdma_device, gpu);
        if (seen != expected) {
          RC_LOG() << nic.address.ToString() << " to " << gpu << ": " << seen << ", not " << expected << "\n"
                   << *text;
          RC_FAIL("another distance");
        }
      }
      for (const nccl::TopologyFileNic& other : node.nics()) {
        RC_ASSERT(&other == &nic || !nccl->WouldMerge(nic.rdma_device, other.rdma_device));
      }
    }
  });
}

}  // namespace
}  // namespace railhead::testing
