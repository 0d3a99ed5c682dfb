#include "deviceplugin/tools/fabric_suggest/observe.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/nl/host_use.h"
#include "netns/packet/lldp_listener.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"
#include "netns/sys/rdma_sysfs.h"

namespace railhead::fabric_suggest {
namespace {

constexpr const char* kVlanConfig = "/proc/net/vlan/config";

// The host's netns at one moment.
struct HostView {
  NetNs ns;
  std::unique_ptr<RouteApi> route;
  std::vector<Link> links;
  std::vector<Route> routes;
  std::vector<VlanDevice> vlans;
  std::set<std::string>
      default_carriers;  // netdevs below or at the host's default route or the node's address

  [[nodiscard]] const Link* Named(const std::string& name) const {
    const auto found = std::ranges::find(links, name, &Link::name);
    return found == links.end() ? nullptr : &*found;
  }
  [[nodiscard]] const Link* Numbered(int index) const {
    const auto found = std::ranges::find(links, index, &Link::index);
    return found == links.end() ? nullptr : &*found;
  }
};

// The netdevs that carry what the host cannot do without: its default route, or the node's address.
Result<std::set<std::string>> DefaultCarriers(const Root& root, const HostView& host) {
  std::set<std::string> carriers;
  const auto node_address = RH_TRY(NodeAddress(root));
  for (const auto& [index, use] : RH_TRY(FindHostUses(*host.route, host.links, node_address))) {
    const Link* link = use.is_vital ? host.Numbered(index) : nullptr;
    if (link == nullptr || !carriers.insert(link->name).second) continue;
    const auto lowers = RH_TRY(LowerDevicesOf(root, link->name));
    carriers.insert(lowers.begin(), lowers.end());
  }
  return carriers;
}

Result<HostView> ReadHost(const Root& root, Kernel& kernel) {
  NetNs ns = RH_TRY(kernel.HostNetns());
  HostView host{std::move(ns), nullptr, {}, {}, {}, {}};
  host.route = RH_TRY(kernel.OpenRoute(host.ns));
  host.links = RH_TRY_WRAP(host.route->ListLinks(), "reading the host's network devices");
  for (const int family : {AF_INET, AF_INET6}) {
    const auto routes = RH_TRY_WRAP(host.route->ListRoutes(family, 0), "reading the host's routes");
    host.routes.insert(host.routes.end(), routes.begin(), routes.end());
  }
  host.vlans = ParseVlanConfig(RH_TRY(ReadFile(root.Path(kVlanConfig))).value_or(""));
  host.default_carriers = RH_TRY(DefaultCarriers(root, host));
  return host;
}

// nullopt: the host has neither an address nor a route there. A VLAN device always counts.
Result<std::optional<ObservedNetwork>> NetworkOn(const HostView& host, const Link& link,
                                                 std::optional<int> vlan) {
  ObservedNetwork network{vlan, link.name, {}, {}};
  const auto addresses = host.route->ListAddresses(link.index);
  if (!addresses && addresses.error().code != ErrorCode::kNotFound) return Fail(addresses.error());
  for (const LinkAddress& one : addresses.value_or(std::vector<LinkAddress>{})) {
    const IpAddress& address = one.prefix.address;
    if (!address.IsLinkLocal() && !address.IsLoopback()) network.addresses.push_back(one.prefix);
  }
  for (const Route& route : host.routes) {
    if (route.link == link.index && route.gateway)
      network.routes.push_back({route.destination, *route.gateway, route.table});
  }
  std::ranges::sort(network.addresses);
  std::ranges::sort(network.routes);
  if (!vlan && network.addresses.empty() && network.routes.empty()) return std::nullopt;
  return network;
}

// A port of a bond or bridge. A VRF has its ports' addresses on the ports.
std::string MasterOf(const HostView& host, const Link& link) {
  const Link* master = link.master == 0 ? nullptr : host.Numbered(link.master);
  return master == nullptr || master->kind == "vrf" ? "" : master->name;
}

Result<void> AddNetworks(const HostView& host, const Link& link, ObservedPf* pf) {
  if (auto own = RH_TRY(NetworkOn(host, link, std::nullopt))) pf->networks.push_back(*std::move(own));
  for (const VlanDevice& vlan : host.vlans) {
    const Link* upper = vlan.lower == link.name ? host.Named(vlan.netdev) : nullptr;
    if (upper == nullptr) continue;
    if (auto network = RH_TRY(NetworkOn(host, *upper, vlan.vlan)))
      pf->networks.push_back(*std::move(network));
  }
  return {};
}

Result<void> AddLinkFacts(const Root& root, const HostView& host, ObservedPf* pf) {
  if (pf->netdev.empty()) return {};
  const Link* link = host.Named(pf->netdev);
  // The name may be of another function's netdev, while the PF's own is in a pod.
  const bool is_other =
      link != nullptr && PciAddress::Parse(link->parent_device) && link->parent_device != pf->device;
  if (link == nullptr || is_other) {
    const auto mtu = RH_TRY(ReadNetdevAttribute(root, pf->netdev, "mtu"));
    const auto number = mtu ? ParseInt(*mtu) : std::nullopt;
    if (number && *number > 0 && *number <= INT32_MAX) pf->mtu = static_cast<int>(*number);
    return {};
  }
  pf->here = true;
  pf->up = link->up;
  pf->carrier = link->carrier;
  if (link->mtu > 0) pf->mtu = link->mtu;
  pf->master = MasterOf(host, *link);
  pf->default_route = host.default_carriers.contains(link->name);
  RH_TRY(AddNetworks(host, *link, pf));
  if (pf->vfs == 0) return {};
  // Not every driver reports the settings of its VFs.
  const auto vf = host.route->GetVf(link->index, 0);
  if (vf && *vf && (*vf)->vlan && (*vf)->vlan->id > 0) pf->vf_vlan = (*vf)->vlan->id;
  return {};
}

void AddAccelerator(const topology::Topology& topology, const PciAddress& address, ObservedPf* pf) {
  const auto nic = topology.NicIndex(address);
  if (!nic) return;
  std::optional<PciPath> nearest;
  for (std::size_t i = 0; i < topology.accelerators().size(); ++i) {
    const PciPath path = topology.NicToAccelerator(*nic, i);
    if (nearest && !Nearer(path, *nearest)) continue;
    nearest = path;
    pf->accelerator = topology.accelerators()[i].address.ToString();
    pf->path = NameOf(path);
  }
}

// Of a function that could not be read only the address is known: positions count it.
Result<ObservedPf> ObservePf(const Root& root, const HostView& host, const inventory::Inventory& inventory,
                             const topology::Topology& topology, const std::string& device) {
  ObservedPf pf;
  pf.device = device;
  const inventory::NicFunction* function = inventory.Find(device);
  if (function == nullptr) return pf;
  pf.netdev = function->pf_name;
  pf.rdma = function->rdma_device;
  pf.is_rdma = function->is_rdma;
  if (!pf.is_rdma && !pf.netdev.empty()) pf.soft_roce = !RH_TRY(RxeDevicesOf(root, pf.netdev)).empty();
  pf.driver = function->driver;
  pf.link_type = function->link_type;
  pf.numa_node = function->numa_node;
  pf.several_ports = function->several_ports;
  pf.vfs = function->numvfs;
  const auto pci = RH_TRY(ReadPciFunction(root, function->address));
  if (pci) pf.most_vfs = pci->sriov_totalvfs;
  AddAccelerator(topology, function->address, &pf);
  RH_TRY(AddLinkFacts(root, host, &pf));
  return pf;
}

// PFs that railheadd listens on now, with or without a neighbor.
std::map<std::string, std::optional<LldpNeighbor>> NeighborsOfReport(const Root& root,
                                                                     NodeObservation* observation) {
  std::map<std::string, std::optional<LldpNeighbor>> neighbors;
  const auto report = lldp::kLldpFile.Read(root);
  if (!report)
    observation->notes.push_back("railheadd's LLDP report is unreadable: " + Describe(report.error()));
  if (!report || !*report || lldp::kLldpFile.IsOld(**report, std::chrono::system_clock::now()))
    return neighbors;
  for (const lldp::RailNeighbor& rail : (*report)->rails) {
    if (rail.device.empty()) continue;
    auto& neighbor = neighbors[rail.device];
    if (rail.neighbor) neighbor = rail.neighbor->neighbor;
  }
  return neighbors;
}

struct ListenedPf {
  ObservedPf* pf;
  LldpListener listener;
};

void NoteDeafness(const ObservedPf& pf, const Error& error, NodeObservation* observation) {
  observation->notes.push_back("no LLDP frames of " + pf.device + " could be received: " + Describe(error));
}

// One pass over the sockets that are readable. Returns after `limit` at the latest. A PF that fails is noted,
// and the others are heard.
Result<void> ReceiveOnce(std::vector<ListenedPf>* all, std::chrono::milliseconds limit,
                         NodeObservation* observation) {
  std::vector<pollfd> waits;
  waits.reserve(all->size());
  for (const ListenedPf& one : *all) waits.push_back({one.listener.fd(), POLLIN, 0});
  const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(limit.count()));
  if (ready < 0 && errno != EINTR) return FailSys(errno, "waiting for LLDP frames");
  if (ready <= 0) return {};
  std::vector<ListenedPf> others;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    ListenedPf& one = (*all)[i];
    const auto heard =
        waits[i].revents == 0 ? Result<std::optional<LldpNeighbor>>{} : one.listener.Receive({});
    if (!heard) {
      NoteDeafness(*one.pf, heard.error(), observation);
    } else if (*heard && (*heard)->ttl.count() > 0) {  // 0: its last frame
      one.pf->neighbor = **heard;
    } else {
      others.push_back(std::move(one));
    }
  }
  *all = std::move(others);
  return {};
}

Result<void> ListenFor(const HostView& host, const std::vector<ObservedPf*>& pfs, std::chrono::seconds limit,
                       NodeObservation* observation) {
  std::vector<ListenedPf> listened;
  for (ObservedPf* pf : pfs) {
    const Link* link = host.Named(pf->netdev);
    if (link == nullptr) continue;
    auto listener = LldpListener::Open(host.ns, link->index);
    if (listener) {
      listened.push_back({pf, *std::move(listener)});
    } else if (listener.error().code == ErrorCode::kPermission) {
      return Fail(listener.error());  // likewise of the others
    } else {
      NoteDeafness(*pf, listener.error(), observation);
    }
  }
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!listened.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    RH_TRY(ReceiveOnce(&listened, left, observation));
  }
  return {};
}

void AddNeighbors(const Root& root, const HostView& host, std::chrono::seconds listen,
                  NodeObservation* observation) {
  const auto reported = NeighborsOfReport(root, observation);
  std::vector<ObservedPf*> silent;
  for (ObservedPf& pf : observation->pfs) {
    const auto known = reported.find(pf.device);
    if (known != reported.end()) {
      pf.neighbor = known->second;
    } else if ((pf.is_rdma || pf.soft_roce) && pf.carrier && pf.link_type != "infiniband") {
      silent.push_back(&pf);
    }
  }
  if (listen.count() <= 0 || silent.empty()) return;
  if (const auto heard = ListenFor(host, silent, listen, observation); !heard)
    observation->notes.push_back("no LLDP frames could be received: " + Describe(heard.error()));
}

}  // namespace

Result<NodeObservation> Observe(const Root& root, Kernel& kernel, const ObserveOptions& options) {
  NodeObservation observation;
  observation.node = RH_TRY(NodeName(root));
  // To the second, as it is written.
  observation.time = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const HostView host = RH_TRY(ReadHost(root, kernel));
  const auto config = RH_TRY(topology::ReadTopologyConfig(root));
  const auto inventory = RH_TRY(inventory::Discover(root, {}));
  const auto topology = RH_TRY(topology::Topology::Read(root, *inventory, config));
  observation.accelerators = static_cast<int>(topology->accelerators().size());
  for (const std::string& device : inventory->rail_pfs)
    observation.pfs.push_back(RH_TRY(ObservePf(root, host, *inventory, *topology, device)));
  for (const auto& [address, error] : inventory->unreadable)
    observation.notes.push_back(address.ToString() + " could not be read: " + Describe(error));
  AddNeighbors(root, host, options.listen, &observation);
  return observation;
}

std::vector<VlanDevice> ParseVlanConfig(std::string_view text) {
  // "pf0.100        | 100  | pf0", after two lines of headings (vlan_seq_show in net/8021q/vlanproc.c).
  std::vector<VlanDevice> devices;
  const auto trimmed = [](std::string_view field) {
    const auto first = field.find_first_not_of(' ');
    if (first == std::string_view::npos) return std::string();
    return std::string(field.substr(first, field.find_last_not_of(' ') - first + 1));
  };
  for (const std::string& line : Split(text, '\n')) {
    const auto fields = Split(line, '|');
    if (fields.size() != 3) continue;
    const auto vlan = ParseInt(trimmed(fields[1]));
    if (!vlan || *vlan < 1 || *vlan > 4094) continue;
    devices.push_back({trimmed(fields[0]), static_cast<int>(*vlan), trimmed(fields[2])});
  }
  return devices;
}

}  // namespace railhead::fabric_suggest
