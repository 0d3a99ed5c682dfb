#include "deviceplugin/pools/inventory.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "cni/state/journal.h"
#include "deviceplugin/pools/function_facts.h"
#include "deviceplugin/pools/pf_memory.h"
#include "deviceplugin/pools/subfunctions.h"
#include "deviceplugin/pools/vdpa.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/kernel.h"
#include "netns/sys/pci.h"
#include "netns/sys/user_space.h"

namespace railhead {
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
  const auto rdma = RH_TRY(RdmaDevicesOf(root, device.address));
  RH_TRY(ReadRdmaFacts(root, rdma, &function));
  return function;
}

// The functions of PCI class 12. Those of `known` are none: they need not be asked.
Result<std::vector<NicFunction>> ListAccelerators(const Root& root, const std::vector<NicFunction>& known) {
  constexpr std::uint32_t kProcessingAccelerators = 0x12;
  std::set<std::string> network;
  for (const NicFunction& function : known) network.insert(function.id);
  std::vector<NicFunction> accelerators;
  const std::string path = root.Path("/sys/bus/pci/devices");
  const auto names = RH_TRY(ListDirectory(path));
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    const auto address = PciAddress::Parse(name);
    if (!address || network.contains(name)) continue;
    const auto class_code =
        RH_TRY(ReadAttribute(std::string(path).append("/").append(name).append("/class")));
    if (!class_code || class_code->rfind("0x12", 0) != 0) continue;
    const auto device = RH_TRY(FindPciDevice(root, *address));
    if (!device || device->class_code >> 16 != kProcessingAccelerators) continue;
    NicFunction function = Describe(*device);
    function.kind = FunctionKind::kAccelerator;
    function.acpi_index = RH_TRY(AcpiIndexOf(root, function.id));
    accelerators.push_back(std::move(function));
  }
  std::sort(accelerators.begin(), accelerators.end(),
            [](const NicFunction& a, const NicFunction& b) { return a.address < b.address; });
  return accelerators;
}

Result<void> MarkVdpa(const Root& root, Inventory* inventory) {
  for (const VdpaDevice& vdpa : RH_TRY_WRAP(ListVdpaDevices(root), "looking for vDPA devices")) {
    for (auto* functions : {&inventory->functions, &inventory->auxiliaries}) {
      const auto found = std::find_if(functions->begin(), functions->end(),
                                      [&](const NicFunction& other) { return other.id == vdpa.parent; });
      if (found != functions->end() && found->vdpa == VdpaType::kNone) found->vdpa = vdpa.type;
    }
  }
  return {};
}

// "" unless the CNI plugin has moved the PF into a pod.
std::string NameInJournal(const Root& root, const std::string& id) {
  const auto entry = Journal(root).FindByDevice(id);
  if (!entry || !*entry) return {};  // a damaged entry is the CNI plugin's to report
  for (const AttachedLink& link : (*entry)->links) {
    if (link.device == id) return link.host_name;
  }
  return {};
}

// A PF that is in a pod itself keeps the name under which it will come home, and its kind.
Result<void> NamePf(const Root& root, PfMemory* memory, NicFunction* pf) {
  if (auto name = RH_TRY(UplinkNetdev(root, pf->address)); name) {
    pf->pf_name = *std::move(name);
    return {};
  }
  pf->pf_name = NameInJournal(root, pf->id);
  memory->Recall(pf);
  return {};
}

}  // namespace

Result<HostNetwork> ReadHostNetwork(RouteApi& route) {
  HostNetwork host;
  std::set<int> indices;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const Route& entry :
         RH_TRY_WRAP(route.ListRoutes(family, kTableMain), "reading the host's routes")) {
      if (entry.destination.length != 0) continue;
      indices.insert(entry.link);
      indices.insert(entry.multipath.begin(), entry.multipath.end());
    }
  }
  for (const Link& link : RH_TRY_WRAP(route.ListLinks(), "reading the host's network devices")) {
    bool needed = indices.contains(link.index);
    if (!needed) {
      const auto addresses = route.ListAddresses(link.index);
      if (!addresses && addresses.error().code == ErrorCode::kNotFound) continue;  // a pod's, gone since
      for (const IpPrefix& prefix : RH_TRY(addresses)) {
        needed = needed || !(prefix.address.IsLinkLocal() || prefix.address.IsLoopback());
      }
    }
    if (needed) host.netdevs.insert(link.name);
  }
  return host;
}

const NicFunction* Inventory::Find(const std::string& id) const {
  for (const auto* list : {&functions, &accelerators, &auxiliaries}) {
    const auto found = std::find_if(list->begin(), list->end(),
                                    [&](const NicFunction& function) { return function.id == id; });
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
    NicFunction pf = RH_TRY(Describe(root, carriers, device));
    RH_TRY(NamePf(root, &memory, &pf));
    if (device.sriov_totalvfs > 0 || pf.is_rdma) inventory->rail_pfs.push_back(pf.id);
    const auto vfs = RH_TRY(ReadVfs(root, device.address));
    pf.vf_count = static_cast<int>(vfs.size());
    inventory->functions.push_back(pf);
    for (const PciDevice& vf_device : vfs) {
      NicFunction vf = RH_TRY(Describe(root, carriers, vf_device));
      vf.pf_name = pf.pf_name;
      // In a pod nothing of it can be seen from here; its PF is of the same kind.
      if (vf.link_type.empty()) {
        vf.link_type = pf.link_type;
        const bool kernel_driver = !vf.driver.empty() && UserSpaceOf(vf.driver) == UserSpace::kNone;
        vf.is_rdma = vf.is_rdma || (pf.is_rdma && kernel_driver);
      }
      inventory->functions.push_back(std::move(vf));
    }
  }
  inventory->accelerators =
      RH_TRY_WRAP(ListAccelerators(root, inventory->functions), "looking for accelerators");
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

}  // namespace railhead
