// Facts of the rails' PFs.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cni/state/journal.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/inventory/pf_memory.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/tools/doctor/facts.h"
#include "deviceplugin/tools/doctor/read_facts.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/sys/accelerators.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/network_managers.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_capabilities.h"
#include "netns/sys/pci_path.h"

namespace railhead::doctor {
namespace {

// PCI_SRIOV_CTRL of include/uapi/linux/pci_regs.h
constexpr int kSriovControlOffset = 0x08;

// The table begins with the default GIDs, and the first address follows them.
constexpr int kGidSlots = 4;

Fact<int> ReadNumber(const std::string& path) {
  auto text = ReadAttribute(path);
  if (!text) return Fact<int>::Unknown(Describe(text.error()));
  if (!*text) return Fact<int>::Unknown("no such file: " + path);
  const auto number = ParseInt(**text);
  if (!number) return Fact<int>::Unknown(path + " holds '" + **text + "', not a number");
  return static_cast<int>(*number);
}

// The kernel takes the larger of both: IN_DEV_MAXCONF in include/linux/inetdevice.h.
Fact<ArpSettings> ReadArp(const Root& root, const std::string& netdev) {
  ArpSettings settings;
  const std::string directory = root.Path("/proc/sys/net/ipv4/conf/");
  for (const auto& [name, value] : {std::pair("rp_filter", &settings.rp_filter),
                                    {"arp_ignore", &settings.arp_ignore},
                                    {"arp_announce", &settings.arp_announce}}) {
    for (const std::string& of : {std::string("all"), netdev}) {
      const auto number = ReadNumber(std::string(directory).append(of).append("/").append(name));
      if (!number) return Fact<ArpSettings>::Unknown(number.why());
      *value = std::max(*value, *number);
    }
  }
  return settings;
}

// OFED's files; upstream drivers have none.
Fact<EcnState> ReadEcn(const Root& root, const std::string& netdev) {
  EcnState state;
  const std::string directory = root.Path("/sys/class/net/") + netdev + "/ecn/";
  for (const auto& [name, flags] : {std::pair("roce_rp", &state.reacts), {"roce_np", &state.notifies}}) {
    for (std::size_t priority = 0; priority < kPriorities; ++priority) {
      const auto flag =
          ReadNumber(std::string(directory).append(name).append("/enable/").append(std::to_string(priority)));
      if (!flag) return Fact<EcnState>::Unknown("only OFED's driver shows ECN: " + flag.why());
      flags->push_back(*flag != 0);
    }
  }
  return state;
}

// The name by which a rail may know the PF. While the PF is in a pod: its earlier name.
std::string NameForRail(const Root& root, inventory::PfMemory* memory, const PciDevice& device,
                        const std::string& netdev) {
  if (!netdev.empty()) return netdev;
  const std::string id = device.address.ToString();
  const auto entry = Journal(root).FindByDevice(id);
  if (entry && *entry) {
    for (const AttachedDevice& link : (*entry)->devices) {
      if (link.device == id) return link.before.name;
    }
  }
  inventory::NicFunction pf;
  pf.address = pf.pf = device.address;
  pf.id = id;
  pf.driver = device.driver.value_or("");
  memory->Recall(&pf);
  return pf.pf_name;
}

Fact<std::string> FirmwareOf(const Root& root, const KernelQuestions& kernel, const PfFacts& pf) {
  using Text = Fact<std::string>;
  if (!pf.rdma.empty()) {
    auto version = ReadAttribute(root.Path("/sys/class/infiniband/") + pf.rdma + "/fw_ver");
    if (version && *version) return **std::move(version);
  }
  const auto versions = kernel.versions(pf.address.ToString());
  if (!versions) return Text::Unknown(Describe(versions.error()));
  // Documentation/networking/devlink/devlink-info.rst
  for (const char* name : {"fw", "fw.version", "fw.mgmt"}) {
    if (const auto found = versions->find(name); found != versions->end()) return found->second;
  }
  return Text::Unknown("the driver does not tell its firmware");
}

// Of the PF itself, and of the first VF on the host. For a VF in a pod, some drivers hide the table.
std::vector<GidFacts> ReadGids(const Root& root, const NodeFacts& facts, const PfFacts& pf) {
  std::vector<std::string> devices;
  if (!pf.rdma.empty()) devices.push_back(pf.rdma);
  std::map<PciAddress, std::string> by_function;
  for (const auto& [name, function] : facts.rdma_functions) by_function[function] = name;
  for (const PciAddress& vf : pf.vfs) {
    const auto found = by_function.find(vf);
    if (found == by_function.end()) continue;
    const auto netdevs = NetdevsOf(root, vf);
    if (!netdevs || netdevs->empty()) continue;
    devices.push_back(found->second);
    break;
  }
  std::vector<GidFacts> gids;
  gids.reserve(devices.size());
  for (const std::string& device : devices) {
    gids.push_back(
        {device, Fact<std::vector<GidEntry>>::Of(ReadGidTable(root, device, 1, kGidSlots), "it is gone")});
  }
  return gids;
}

Fact<DcbState> ReadDcbOf(const KernelQuestions& kernel, const std::string& netdev) {
  return Fact<DcbState>::Of(kernel.dcb(netdev), "its driver has no DCB");
}

// Reads the facts that only the network device has.
void ReadNetdev(const Root& root, const KernelQuestions& kernel, PfFacts* pf) {
  if (pf->netdev.empty()) {
    const std::string why = "its network device is not in this namespace";
    pf->mtu = Fact<int>::Unknown(why);
    pf->arp = Fact<ArpSettings>::Unknown(why);
    pf->dcb = Fact<DcbState>::Unknown(why);
    pf->ecn = Fact<EcnState>::Unknown(why);
    pf->vf_settings = Fact<std::map<int, VfSettings>>::Unknown(why);
    return;
  }
  pf->mtu = ReadNumber(root.Path("/sys/class/net/") + pf->netdev + "/mtu");
  pf->arp = ReadArp(root, pf->netdev);
  pf->dcb = ReadDcbOf(kernel, pf->netdev);
  pf->ecn = ReadEcn(root, pf->netdev);
  if (!pf->vfs.empty()) pf->vf_settings = Fact<std::map<int, VfSettings>>::Of(kernel.vfs(pf->netdev));
}

// A value that every PF has is an error if it cannot be read. The others become facts.
Result<void> Complete(const Root& root, const KernelQuestions& kernel, const NodeFacts& facts, PfFacts* pf) {
  pf->vfs = RH_TRY(VfsOf(root, pf->address));
  const auto rdma = RH_TRY(RdmaDevicesOf(root, pf->address));
  if (!rdma.empty()) pf->rdma = rdma.front();
  if (!rdma.empty()) pf->port = Fact<PortState>::Of(PortStateOf(root, pf->rdma, 1), "it has no port 1");
  pf->driver_version = Fact<std::string>::Of(
      ReadAttribute(root.Path("/sys/module/") + pf->driver + "/version"), "the kernel's own");
  pf->firmware = FirmwareOf(root, kernel, *pf);
  pf->sriov_control = Fact<std::uint16_t>::Of(
      ReadExtendedCapability(root, pf->address, kCapabilitySriov, kSriovControlOffset),
      "its configuration space shows no SR-IOV");
  pf->iommu = IommuOf(root, pf->address);
  pf->gids = ReadGids(root, facts, *pf);
  ReadNetdev(root, kernel, pf);
  return {};
}

Result<std::vector<PfFacts>> ReadAll(const Root& root, const KernelQuestions& kernel,
                                     const NodeFacts& facts) {
  const auto devices = RH_TRY(ListRailPfs(root));
  std::vector<std::string> in_order;
  in_order.reserve(devices.size());
  for (const PciDevice& device : devices) in_order.push_back(device.address.ToString());
  inventory::PfMemory memory(root);
  std::vector<PfFacts> pfs;
  for (const PciDevice& device : devices) {
    PfFacts pf;
    pf.address = device.address;
    pf.netdev = RH_TRY(UplinkNetdev(root, device.address)).value_or("");
    if (facts.fabric) {
      const Rail* rail = facts.fabric->RailOfPf(NameForRail(root, &memory, device, pf.netdev),
                                                device.address.ToString(), in_order);
      if (rail == nullptr) continue;
      pf.rail = rail->name;
    }
    pf.driver = device.driver.value_or("");
    pf.vendor = device.vendor;
    pf.device = device.device;
    pf.total_vfs = device.sriov_totalvfs;
    RH_TRY(Complete(root, kernel, facts, &pf));
    pfs.push_back(std::move(pf));
  }
  return pfs;
}

}  // namespace

void ReadPfs(const Root& root, const KernelQuestions& kernel, NodeFacts* facts) {
  auto pfs = ReadAll(root, kernel, *facts);
  if (pfs) {
    facts->pfs = *std::move(pfs);
  } else {
    facts->pfs_unknown = Describe(pfs.error());
  }
}

// Accelerators, the bridges between them and the rails' NICs, and the IOMMU.

namespace {

// PCI_ACS_CTRL of include/uapi/linux/pci_regs.h
constexpr int kAcsControl = 0x06;

Result<std::vector<Accelerator>> FindAccelerators(const Root& root, const NodeFacts& facts) {
  const auto config = RH_TRY(topology::ReadTopologyConfig(root));
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
      // Beyond that distance, traffic goes through the root complex anyway.
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
  return Fact<std::string>::Of(ReadAttribute(root.Path(path)), "no such file: " + path);
}

void ReadPci(const Root& root, NodeFacts* facts) {
  const auto accelerators = FindAccelerators(root, *facts);
  if (!accelerators) {
    facts->accelerators = Fact<std::vector<AcceleratorFacts>>::Unknown(Describe(accelerators.error()));
    facts->bridges = Fact<std::vector<BridgeFacts>>::Unknown(Describe(accelerators.error()));
    return;
  }
  std::vector<AcceleratorFacts> list;
  for (const Accelerator& one : *accelerators)
    list.push_back({one.address, one.vendor, one.driver, IommuOf(root, one.address)});
  facts->accelerators = std::move(list);
  facts->bridges = Fact<std::vector<BridgeFacts>>::Of(ReadBridges(root, *accelerators, facts->pfs));
}

Fact<std::vector<ManagedDevice>> ReadManaged(const Root& root, const std::vector<PfFacts>& pfs) {
  using Managed = Fact<std::vector<ManagedDevice>>;
  const bool sees_run = Exists(root.Path("/run/systemd/system"));
  if (ManagersOnHost(root).empty() && !sees_run)
    return Managed::Unknown(
        "the host's /run is not visible, or the host has no systemd and no network manager");
  std::vector<ManagedDevice> devices;
  for (const PfFacts& pf : pfs) {
    const auto candidates = pf.vfs.empty() ? std::vector<PciAddress>{pf.address} : pf.vfs;
    for (const PciAddress& address : candidates) {
      // One that has gone since, or is in a pod, has none here.
      for (const std::string& netdev : NetdevsOf(root, address).value_or(std::vector<std::string>{})) {
        const auto index = ReadNetdevAttribute(root, netdev, "ifindex").value_or(std::nullopt);
        const auto number = index ? ParseInt(*index) : std::nullopt;
        if (number) devices.push_back({address, netdev, ManagersOf(root, static_cast<int>(*number))});
      }
    }
  }
  return devices;
}

}  // namespace railhead::doctor
