#include "deviceplugin/node/inventory/inventory.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "cni/state/journal.h"
#include "deviceplugin/node/inventory/subfunctions.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "netns/kernel.h"
#include "netns/nl/vf_messages.h"
#include "netns/sys/device_nodes.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/pci.h"
#include "netns/sys/rdma_sysfs.h"

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
  function.vf_count = device.sriov_numvfs;
  function.numvfs = device.sriov_numvfs;
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

// For a PF that is in a pod itself: the name that it gets when it is restored, and its kind.
Result<void> NamePf(const Root& root, PfMemory* memory, NicFunction* pf) {
  // It may be on the host already, under a name that the pod gave it.
  pf->pf_name = NameInJournal(root, pf->id);
  auto name = pf->pf_name.empty() ? RH_TRY(UplinkNetdev(root, pf->address)) : std::nullopt;
  if (name) {
    pf->pf_name = *std::move(name);
  } else {
    memory->Recall(pf);
  }
  return {};
}

Result<NicFunction> DescribePf(const Root& root, const HostCarriers& carriers, const PciDevice& device,
                               PfMemory* memory) {
  NicFunction pf = RH_TRY(Describe(root, carriers, device));
  RH_TRY(NamePf(root, memory, &pf));
  return pf;
}

// A PF that cannot be read counts nevertheless, as in ListRailPfs(). Otherwise positions in fabric.json would
// mean other PFs. If even that cannot be decided, nothing is known about the node's rails.
Result<void> AddPf(const Root& root, const HostCarriers& carriers, const PciDevice& device, PfMemory* memory,
                   Inventory* inventory) {
  const std::string id = device.address.ToString();
  auto described = DescribePf(root, carriers, device, memory);
  const bool is_rdma = described ? described->is_rdma : !RH_TRY(RdmaDevicesOf(root, device.address)).empty();
  if (device.sriov_totalvfs > 0 || is_rdma) inventory->rail_pfs.push_back(id);
  if (!described) {
    inventory->unreadable.emplace(device.address, std::move(described.error()));
    return {};
  }
  NicFunction& pf = *described;
  const auto vfs = RH_TRY(ReadVfs(root, device.address, &inventory->unreadable));
  pf.vf_count = static_cast<int>(vfs.size());
  inventory->functions.push_back(pf);
  for (const PciDevice& vf_device : vfs) {
    auto vf = Describe(root, carriers, vf_device);
    if (!vf) {
      inventory->unreadable.emplace(vf_device.address, std::move(vf.error()));
      continue;
    }
    vf->pf_name = pf.pf_name;
    // The devices of a VF in a pod are not visible here; its PF is of the same kind.
    if (vf->link_type.empty()) {
      vf->link_type = pf.link_type;
      const bool kernel_driver = !vf->driver.empty() && UserSpaceOf(vf->driver) == UserSpace::kNone;
      vf->is_rdma = vf->is_rdma || (pf.is_rdma && kernel_driver);
    }
    inventory->functions.push_back(*std::move(vf));
  }
  return {};
}

}  // namespace

Result<HostNetwork> ReadHostNetwork(RouteApi& route_api) {
  HostNetwork host;
  std::set<int> routed;
  std::set<std::string> ruled;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const Route& route : RH_TRY_WRAP(route_api.ListRoutes(family, 0), "reading the host's routes")) {
      if (!IsOfHost(route)) continue;
      routed.insert(route.link);
      routed.insert(route.multipath.begin(), route.multipath.end());
    }
    for (const Rule& rule : RH_TRY_WRAP(route_api.ListRules(family), "reading the host's rules")) {
      ruled.insert(rule.iif);
      ruled.insert(rule.oif);
    }
  }
  for (const Link& link : RH_TRY_WRAP(route_api.ListLinks(), "reading the host's network devices")) {
    bool needed = routed.contains(link.index) || ruled.contains(link.name);
    if (!needed) {
      const auto addresses = route_api.ListAddresses(link.index);
      if (!addresses && addresses.error().code == ErrorCode::kNotFound) continue;  // a pod's, gone since
      for (const IpPrefix& prefix : RH_TRY(addresses)) {
        needed = needed || (IsOfHost(prefix) && !prefix.address.IsLoopback());
      }
    }
    if (needed) host.netdevs.insert(link.name);
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

Result<std::shared_ptr<const Inventory>> Discover(const Root& root, const HostNetwork& host) {
  auto inventory = std::make_shared<Inventory>();
  PfMemory memory(root);
  const HostCarriers carriers =
      RH_TRY_WRAP(FindHostCarriers(root, host), "looking for what the host's network stands on");
  for (const PciDevice& device : RH_TRY_WRAP(ListNetworkPfs(root), "looking for network functions")) {
    RH_TRY(AddPf(root, carriers, device, &memory, inventory.get()));
  }
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

namespace {

constexpr const char* kInfiniBand = "infiniband";

Result<std::string> LinkTypeOfPort(const Root& root, const std::string& ibdev) {
  switch (RH_TRY(LinkLayerOf(root, ibdev, 1)).value_or(LinkLayer::kUnknown)) {
    case LinkLayer::kEthernet:
      return std::string("ether");
    case LinkLayer::kInfiniband:
      return std::string(kInfiniBand);
    case LinkLayer::kUnknown:
      break;
  }
  return std::string();
}

// Port 1, index 0: "0xffff" (Documentation/ABI/stable/sysfs-class-infiniband).
Result<std::optional<std::uint16_t>> DefaultPkey(const Root& root, const std::string& ibdev) {
  const auto text = RH_TRY(ReadAttribute(root.Path("/sys/class/infiniband/") + ibdev + "/ports/1/pkeys/0"));
  if (!text || text->rfind("0x", 0) != 0) return std::nullopt;
  const auto value = ParseHex(text->substr(2));
  if (!value || *value > 0xffff) return std::nullopt;
  return static_cast<std::uint16_t>(*value);
}

}  // namespace

Result<HostCarriers> FindHostCarriers(const Root& root, const HostNetwork& host) {
  HostCarriers carriers;
  for (const std::string& netdev : host.netdevs) carriers.emplace(netdev, netdev);
  for (const std::string& netdev : host.netdevs) {
    for (const std::string& lower : RH_TRY(LowerDevicesOf(root, netdev))) carriers.emplace(lower, netdev);
  }
  return carriers;
}

Result<void> ReadNetdevFacts(const Root& root, const HostCarriers& host,
                             const std::vector<std::string>& netdevs, NicFunction* function) {
  if (netdevs.empty()) return {};
  const auto type = RH_TRY(HardwareTypeOf(root, netdevs.front()));
  if (type) function->link_type = HardwareTypeName(*type);
  for (const std::string& netdev : netdevs) {
    const auto carries = host.find(netdev);
    if (carries == host.end()) continue;
    function->used_by_host = true;
    function->used_by_host_through = carries->second;
    break;
  }
  return {};
}

Result<void> ReadRdmaFacts(const Root& root, const std::vector<std::string>& rdma_devices,
                           NicFunction* function) {
  function->is_rdma = !rdma_devices.empty();
  if (rdma_devices.empty()) return {};
  function->rdma_device = rdma_devices.front();
  if (function->link_type.empty()) {
    function->link_type = RH_TRY(LinkTypeOfPort(root, function->rdma_device));
  }
  if (function->link_type == kInfiniBand) {
    function->pkey = RH_TRY(DefaultPkey(root, function->rdma_device));
  }
  return {};
}

namespace {

struct KnownPfs {
  std::vector<KnownPf> pfs;

  bool operator==(const KnownPfs&) const = default;
};

}  // namespace
}  // namespace railhead::inventory

template <>
struct railhead::Shape<railhead::inventory::KnownPf> {
  using Pf = inventory::KnownPf;
  static void List(auto& f) {
    f("pf", &Pf::id, kRequiredField);
    f("driver", &Pf::driver, kRequiredField);
    f("name", &Pf::name);
    f("linkType", &Pf::link_type);
    f("rdma", &Pf::is_rdma);
  }
  static std::string Key(const Pf& pf) { return pf.id; }
};

template <>
struct railhead::Shape<railhead::inventory::KnownPfs> {
  static void List(auto& f) {
    f.Version(1);
    f("pfs", &inventory::KnownPfs::pfs);
  }
};

namespace railhead::inventory {
namespace {

constexpr StateFile<KnownPfs> kMemory{"/run/railhead/pfs.json", "remembering the PFs"};

// A file that cannot be read counts as empty.
std::vector<KnownPf> ReadMemory(const Root& root) {
  const auto file = kMemory.Read(root);
  return file && *file ? (*file)->pfs : std::vector<KnownPf>{};
}

// The same device in the same role; nullptr: unknown.
const KnownPf* FindSamePf(const std::vector<KnownPf>& known, const NicFunction& now) {
  const auto before = std::ranges::find(known, now.id, &KnownPf::id);
  const bool is_same =
      before != known.end() && before->driver == now.driver &&
      (before->link_type.empty() || now.link_type.empty() || before->link_type == now.link_type);
  return is_same ? &*before : nullptr;
}

}  // namespace

void PfMemory::Recall(NicFunction* pf) {
  if (pf->driver.empty()) return;
  if (!known_) known_ = ReadMemory(root_);
  const KnownPf* before = FindSamePf(*known_, *pf);
  if (before == nullptr) return;
  if (pf->pf_name.empty() && !Exists(root_.Path("/sys/class/net/") + before->name))
    pf->pf_name = before->name;
  if (pf->link_type.empty()) pf->link_type = before->link_type;
  pf->is_rdma = pf->is_rdma || before->is_rdma;
}

Result<void> RememberPfs(const Root& root, const Inventory& inventory) {
  const auto before = kMemory.Read(root);
  KnownPfs now;
  for (const NicFunction& pf : inventory.functions) {
    if (pf.is_vf || pf.driver.empty()) continue;
    now.pfs.push_back({pf.id, pf.driver, pf.pf_name, pf.link_type, pf.is_rdma});
    if (!pf.pf_name.empty() || !before || !*before) continue;
    // Another device has its name at the moment.
    if (const KnownPf* old = FindSamePf((*before)->pfs, pf)) now.pfs.back().name = old->name;
  }
  std::ranges::sort(now.pfs, {}, &KnownPf::id);
  // A file that cannot be read is written again.
  if (before && *before == now) return {};
  return kMemory.Write(root, now);
}

}  // namespace railhead::inventory
