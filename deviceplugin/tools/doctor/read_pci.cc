// Accelerators, the bridges between them and the rails' NICs, and the IOMMU.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "deviceplugin/node/topology/accelerators.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_config.h"
#include "netns/sys/pci_path.h"

namespace railhead::doctor {
namespace {

// PCI_ACS_CTRL of include/uapi/linux/pci_regs.h
constexpr int kAcsControl = 0x06;

Result<std::vector<Accelerator>> FindAccelerators(const Root& root, const NodeFacts& facts) {
  const auto config = RH_TRY(ReadTopologyConfig(root));
  std::set<PciAddress> others;
  for (const PfFacts& pf : facts.pfs) {
    others.insert(pf.address);
    others.insert(pf.vfs.begin(), pf.vfs.end());
  }
  return ListAccelerators(root, config.accelerators.kinds, others);
}

Result<std::vector<BridgeFacts>> ReadBridges(const Root& root, const std::vector<Accelerator>& accelerators,
                                             const std::vector<PfFacts>& pfs) {
  std::map<PciAddress, BridgeFacts> bridges;
  for (const PfFacts& pf : pfs) {
    const auto device = RH_TRY(FindPciDevice(root, pf.address));
    if (!device) continue;  // pulled out a moment ago
    for (const Accelerator& accelerator : accelerators) {
      const PciPlace place{accelerator.path, accelerator.numa_node};
      // Farther than that, traffic goes through the root complex anyway.
      if (Nearer(PciPath::kPxb, PciPathBetween(PlaceOf(*device), place))) continue;
      for (const PciAddress& bridge : BridgesBetween(device->path, accelerator.path))
        bridges.try_emplace(bridge, BridgeFacts{bridge, {}, pf.address, accelerator.address});
    }
  }
  std::vector<BridgeFacts> list;
  list.reserve(bridges.size());
  for (auto& [address, bridge] : bridges) {
    bridge.acs = Fact<std::optional<std::uint16_t>>::Of(
        ReadExtendedCapability(root, address, kCapabilityAcs, kAcsControl));
    list.push_back(std::move(bridge));
  }
  return list;
}

}  // namespace

std::vector<PciAddress> BridgesBetween(const std::string& a, const std::string& b) {
  const auto left = Split(a, '/');
  const auto right = Split(b, '/');
  const auto [from_left, from_right] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  std::vector<PciAddress> bridges;
  const auto add = [&](auto from, auto end) {
    // The last one is the function itself.
    for (; from != end && from + 1 != end; ++from) {
      if (const auto address = PciAddress::Parse(*from)) bridges.push_back(*address);
    }
  };
  add(from_left, left.end());
  add(from_right, right.end());
  return bridges;
}

Fact<std::string> IommuOf(const Root& root, const PciAddress& address) {
  const auto link = ReadLink(root.Path("/sys/bus/pci/devices/") + address.ToString() + "/iommu_group");
  if (!link) return Fact<std::string>::Unknown(Describe(link.error()));
  if (!*link) return std::string("off");
  const std::string path = "/sys/kernel/iommu_groups/" + (*link)->substr((*link)->rfind('/') + 1) + "/type";
  return Fact<std::string>::Of(ReadAttribute(root.Path(path)), "there is no " + path);
}

void ReadPci(const Root& root, FactKinds kinds, NodeFacts* facts) {
  if (!kinds.Has(FactKind::kAccelerators)) return;
  const auto accelerators = FindAccelerators(root, *facts);
  if (!accelerators) {
    facts->accelerators = Fact<std::vector<AcceleratorFacts>>::Unknown(Describe(accelerators.error()));
    facts->bridges = Fact<std::vector<BridgeFacts>>::Unknown(Describe(accelerators.error()));
    return;
  }
  std::vector<AcceleratorFacts> list;
  for (const Accelerator& one : *accelerators)
    list.push_back({one.address, one.vendor, one.driver,
                    kinds.Has(FactKind::kIommu) ? IommuOf(root, one.address) : Fact<std::string>()});
  facts->accelerators = std::move(list);
  if (!kinds.Has(FactKind::kBridges)) return;
  facts->bridges = Fact<std::vector<BridgeFacts>>::Of(ReadBridges(root, *accelerators, facts->pfs));
}

}  // namespace railhead::doctor
