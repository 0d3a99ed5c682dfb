#include "deviceplugin/pools/inventory.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "cni/state/journal.h"
#include "netns/kernel.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/pci.h"

namespace railhead {
namespace {

// The first of `netdevs`, or of what is stacked on them, that the host needs.
Result<std::optional<std::string>> NeededByHost(const Root& root, const HostNetwork& host,
                                                const std::vector<std::string>& netdevs) {
  if (host.netdevs.empty()) return std::nullopt;
  for (const std::string& netdev : netdevs) {
    if (host.netdevs.contains(netdev)) return netdev;
    for (const std::string& upper : RH_TRY(UpperDevicesOf(root, netdev))) {
      if (host.netdevs.contains(upper)) return upper;
    }
  }
  return std::nullopt;
}

Result<NicFunction> Describe(const Root& root, const HostNetwork& host, const PciDevice& device) {
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

  const auto rdma = RH_TRY(RdmaDevicesOf(root, device.address));
  if (!rdma.empty()) function.rdma_device = rdma.front();
  function.is_rdma = !rdma.empty();
  const auto netdevs = RH_TRY(NetdevsOf(root, device.address));
  if (!netdevs.empty()) {
    const auto type = RH_TRY(HardwareTypeOf(root, netdevs.front()));
    if (type) function.link_type = HardwareTypeName(*type);
  }
  if (auto through = RH_TRY(NeededByHost(root, host, netdevs)); through) {
    function.used_by_host = true;
    function.used_by_host_through = *std::move(through);
  }
  return function;
}

// A PF that is in a pod itself keeps the name under which it will come home.
Result<std::string> NameOfPf(const Root& root, const PciAddress& pf) {
  if (auto name = RH_TRY(UplinkNetdev(root, pf)); name) return *std::move(name);
  const std::string id = pf.ToString();
  const auto entry = Journal(root).FindByDevice(id);
  if (!entry || !*entry) return std::string();  // a damaged entry is the CNI plugin's to report
  for (const AttachedLink& link : (*entry)->links) {
    if (link.device == id) return link.host_name;
  }
  return std::string();
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
      for (const IpPrefix& prefix : RH_TRY(route.ListAddresses(link.index))) {
        needed = needed || !(prefix.address.IsLinkLocal() || prefix.address.IsLoopback());
      }
    }
    if (needed) host.netdevs.insert(link.name);
  }
  return host;
}

const NicFunction* Inventory::Find(const std::string& id) const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const NicFunction& function) { return function.id == id; });
  return found == functions.end() ? nullptr : &*found;
}

Result<std::shared_ptr<const Inventory>> Discover(const Root& root, const HostNetwork& host) {
  auto inventory = std::make_shared<Inventory>();
  for (const PciDevice& device : RH_TRY_WRAP(ListNetworkPfs(root), "looking for network functions")) {
    NicFunction pf = RH_TRY(Describe(root, host, device));
    pf.pf_name = RH_TRY(NameOfPf(root, device.address));
    if (device.sriov_totalvfs > 0 || pf.is_rdma) inventory->rail_pfs.push_back(pf.id);
    const auto vfs = RH_TRY(ReadVfs(root, device.address));
    pf.vf_count = static_cast<int>(vfs.size());
    inventory->functions.push_back(pf);
    for (const PciDevice& vf_device : vfs) {
      NicFunction vf = RH_TRY(Describe(root, host, vf_device));
      vf.pf_name = pf.pf_name;
      // In a pod nothing of it can be seen from here; its PF is of the same kind.
      if (vf.link_type.empty()) {
        vf.link_type = pf.link_type;
        vf.is_rdma = vf.is_rdma || (pf.is_rdma && !vf.driver.empty());
      }
      inventory->functions.push_back(std::move(vf));
    }
  }
  return std::shared_ptr<const Inventory>(std::move(inventory));
}

}  // namespace railhead
