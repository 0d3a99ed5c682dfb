#include "deviceplugin/node/inventory/inventory.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "cni/state/journal.h"
#include "deviceplugin/node/inventory/netdev_facts.h"
#include "deviceplugin/node/inventory/pf_memory.h"
#include "deviceplugin/node/inventory/subfunctions.h"
#include "deviceplugin/node/inventory/vdpa_devices.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "netns/kernel.h"
#include "netns/nl/host_use.h"
#include "netns/sys/network_managers.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/user_space.h"

namespace railhead::inventory {
namespace {

// Documentation/ABI/testing/sysfs-bus-pci; few functions have it.
Result<std::optional<std::uint32_t>> AcpiIndexOf(const Root& root, const std::string& id) {
  const auto text = RH_TRY(ReadAttribute(root.Path("/sys/bus/pci/devices/") + id + "/acpi_index"));
  const auto index = text ? ParseInt(*text) : std::nullopt;
  if (!index || *index < 0 || *index > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*index);
}

NicFunction Describe(const PciDevice& device) {
  NicFunction function;
  function.address = device.address;
  function.id = device.address.ToString();
  function.vendor = device.vendor;
  function.device = device.device;
  function.driver = device.driver.value_or("");
  function.numa_node = device.numa_node;
  function.is_vf = device.is_vf;
  function.vf_index = device.vf_index.value_or(-1);
  function.pf = device.physfn.value_or(device.address);
  return function;
}

Result<NicFunction> Describe(const Root& root, const HostCarriers& host, const PciDevice& device) {
  NicFunction function = Describe(device);
  function.acpi_index = RH_TRY(AcpiIndexOf(root, function.id));
  const auto netdevs = RH_TRY(NetdevsOf(root, device.address));
  RH_TRY(ReadNetdevFacts(root, host, netdevs, &function));
  function.several_ports = netdevs.size() > 1 && RH_TRY(OwnNetdevsOf(root, device.address)).size() > 1;
  const auto rdma = RH_TRY(RdmaDevicesOf(root, device.address));
  RH_TRY(ReadRdmaFacts(root, rdma, &function));
  return function;
}

Result<std::optional<NicFunction>> ReadAccelerator(const Root& root, const PciAddress& address) {
  constexpr std::uint32_t kProcessingAccelerators = 0x12;
  const std::string id = address.ToString();
  const auto class_code = RH_TRY(ReadAttribute(root.Path("/sys/bus/pci/devices/") + id + "/class"));
  if (!class_code || !class_code->starts_with("0x12")) return std::nullopt;
  const auto device = RH_TRY(FindPciDevice(root, address));
  if (!device || device->class_code >> 16 != kProcessingAccelerators) return std::nullopt;
  NicFunction function = Describe(*device);
  function.kind = FunctionKind::kAccelerator;
  function.numvfs = function.vf_count = RH_TRY(NumVfsOf(root, address));
  function.acpi_index = RH_TRY(AcpiIndexOf(root, id));
  return function;
}

// Adds the functions of PCI class 12. Network functions are skipped: they are of another class.
Result<void> AddAccelerators(const Root& root, Inventory* inventory) {
  std::set<PciAddress> network;
  for (const NicFunction& function : inventory->functions) network.insert(function.address);
  const auto names =
      RH_TRY_WRAP(ListDirectory(root.Path("/sys/bus/pci/devices")), "looking for accelerators");
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    const auto address = PciAddress::Parse(name);
    if (!address || network.contains(*address) || inventory->unreadable.contains(*address)) continue;
    auto function = ReadAccelerator(root, *address);
    if (!function) {
      inventory->unreadable.emplace(*address, std::move(function.error()));
    } else if (*function) {
      inventory->accelerators.push_back(**std::move(function));
    }
  }
  std::ranges::sort(inventory->accelerators, [](const NicFunction& one, const NicFunction& other) {
    return one.address < other.address;
  });
  return {};
}

Result<void> MarkVdpa(const Root& root, Inventory* inventory) {
  for (const VdpaDevice& vdpa : RH_TRY_WRAP(ListVdpaDevices(root), "looking for vDPA devices")) {
    for (auto* functions : {&inventory->functions, &inventory->auxiliaries}) {
      const auto found = std::ranges::find(*functions, vdpa.parent, &NicFunction::id);
      if (found != functions->end() && found->vdpa == VdpaType::kNone) found->vdpa = vdpa.type;
    }
  }
  return {};
}

// "" unless the CNI plugin has moved the PF into a pod.
std::string NameInJournal(const Root& root, const std::string& id) {
  const auto entry = Journal(root).FindByDevice(id);
  if (!entry || !*entry) return {};  // a damaged entry is the CNI plugin's to report
  for (const AttachedDevice& link : (*entry)->devices) {
    if (link.device == id) return link.before.name;
  }
  return {};
}

// A PF with its VFs, as their attributes show them: what they have from elsewhere is missing.
struct PfReading {
  NicFunction pf;
  std::string name;  // "": its network device is not here
  std::vector<NicFunction> vfs;
  std::map<PciAddress, Error> unreadable;
};

Result<PfReading> ReadPf(const Root& root, const HostCarriers& carriers, const PciDevice& device) {
  PfReading reading;
  reading.pf = RH_TRY(Describe(root, carriers, device));
  reading.pf.numvfs = RH_TRY(NumVfsOf(root, device.address));
  // It may be on the host already, under a name that the pod gave it.
  reading.name = NameInJournal(root, reading.pf.id);
  if (reading.name.empty()) reading.name = RH_TRY(UplinkNetdev(root, device.address)).value_or("");
  const auto vfs = RH_TRY(ReadVfs(root, device.address, &reading.unreadable));
  reading.pf.vf_count = static_cast<int>(vfs.size());
  for (const PciDevice& vf_device : vfs) {
    auto vf = Describe(root, carriers, vf_device);
    if (vf) {
      reading.vfs.push_back(*std::move(vf));
    } else {
      reading.unreadable.emplace(vf_device.address, std::move(vf.error()));
    }
  }
  return reading;
}

// Adds the PFs to an inventory, each with its VFs.
class PfDiscovery {
 public:
  PfDiscovery(const Root& root, HostCarriers carriers, const PfReads& reads, Inventory* inventory)
      : root_(root),
        carriers_(std::make_shared<const HostCarriers>(std::move(carriers))),
        reads_(reads),
        memory_(root),
        inventory_(inventory) {}

  // A PF that cannot be read counts nevertheless, as in ListRailPfs(). Otherwise positions in fabric.json
  // would mean other PFs. If even that cannot be decided, nothing is known about the node's rails.
  Result<void> Add(const PciDevice& device) {
    auto reading = Read(device);
    const bool answers = reading || reading.error().code != ErrorCode::kTimeout;
    if (!answers && AddAsBefore(device.address)) return {};
    if (reading) Complete(&*reading);
    const bool is_rdma =
        reading ? reading->pf.is_rdma : !RH_TRY(RdmaDevicesOf(root_, device.address)).empty();
    if (device.sriov_totalvfs > 0 || is_rdma) inventory_->rail_pfs.push_back(device.address.ToString());
    if (!reading) {
      inventory_->unreadable.emplace(device.address, std::move(reading.error()));
      return {};
    }
    inventory_->functions.push_back(std::move(reading->pf));
    std::ranges::move(reading->vfs, std::back_inserter(inventory_->functions));
    inventory_->unreadable.merge(reading->unreadable);
    return {};
  }

 private:
  [[nodiscard]] Result<PfReading> Read(const PciDevice& device) const {
    if (reads_.workers == nullptr) return ReadPf(root_, *carriers_, device);
    return RH_TRY(reads_.workers->Ask(
        device.address.ToString(),
        [root = root_, carriers = carriers_, device] { return ReadPf(root, *carriers, device); }));
  }

  // Health tells that it does not answer. False: there is nothing to keep.
  bool AddAsBefore(const PciAddress& address) {
    if (reads_.before == nullptr || reads_.before->Find(address.ToString()) == nullptr) return false;
    const std::string id = address.ToString();
    if (Contains(reads_.before->rail_pfs, id)) inventory_->rail_pfs.push_back(id);
    for (const NicFunction& function : reads_.before->functions) {
      if (function.pf == address) inventory_->functions.push_back(function);
    }
    return true;
  }

  // A PF that is in a pod itself has the name that it gets when it is restored, and its kind.
  void Complete(PfReading* reading) {
    NicFunction& pf = reading->pf;
    pf.pf_name = reading->name;
    if (pf.pf_name.empty()) memory_.Recall(&pf);
    for (NicFunction& vf : reading->vfs) {
      vf.pf_name = pf.pf_name;
      // The devices of a VF in a pod are not visible here; its PF is of the same kind.
      if (!vf.link_type.empty()) continue;
      vf.link_type = pf.link_type;
      const bool kernel_driver = !vf.driver.empty() && UserSpaceOf(vf.driver) == UserSpace::kNone;
      vf.is_rdma = vf.is_rdma || (pf.is_rdma && kernel_driver);
    }
  }

  const Root root_;
  const std::shared_ptr<const HostCarriers> carriers_;
  const PfReads& reads_;
  PfMemory memory_;
  Inventory* inventory_;
};

}  // namespace

Result<HostNetwork> ReadHostNetwork(const Root& root, RouteApi& route_api) {
  const auto links = RH_TRY_WRAP(route_api.ListLinks(), "reading the host's network devices");
  const auto node_address = RH_TRY(NodeAddress(root));
  const auto uses = RH_TRY(FindHostUses(route_api, links, node_address));
  HostNetwork host;
  for (const Link& link : links) {
    const auto use = uses.find(link.index);
    if (use == uses.end()) continue;
    // A pod's end of the cluster network: nothing of the inventory.
    if (use->second.kind == HostUse::Kind::kPort && link.parent_device.empty()) continue;
    std::string& why = host.netdevs[link.name];
    why = use->second.text;
    if (const auto managers = ManagersOf(root, link.index); !managers.empty())
      why += ", managed by " + Join(managers, " and ");
  }
  return host;
}

const NicFunction* Inventory::Find(const std::string& id) const {
  for (const auto* list : {&functions, &accelerators, &auxiliaries}) {
    const auto found = std::ranges::find(*list, id, &NicFunction::id);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

Result<std::shared_ptr<const Inventory>> Discover(const Root& root, const HostNetwork& host,
                                                  const PfReads& reads) {
  auto inventory = std::make_shared<Inventory>();
  const HostCarriers carriers =
      RH_TRY_WRAP(FindHostCarriers(root, host), "looking for what the host's network stands on");
  PfDiscovery pfs(root, carriers, reads, inventory.get());
  for (const PciDevice& device : RH_TRY_WRAP(ListNetworkPfs(root), "looking for network functions"))
    RH_TRY(pfs.Add(device));
  RH_TRY(AddAccelerators(root, inventory.get()));
  inventory->auxiliaries =
      RH_TRY_WRAP(ListSubfunctions(root, carriers, inventory->functions), "looking for subfunctions");
  RH_TRY(MarkVdpa(root, inventory.get()));
  return std::shared_ptr<const Inventory>(std::move(inventory));
}

std::vector<NicFunction> Inventory::All() const {
  std::vector<NicFunction> all = functions;
  all.insert(all.end(), accelerators.begin(), accelerators.end());
  all.insert(all.end(), auxiliaries.begin(), auxiliaries.end());
  return all;
}

}  // namespace railhead::inventory
