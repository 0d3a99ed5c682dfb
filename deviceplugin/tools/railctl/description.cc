#include "deviceplugin/tools/railctl/description.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "cni/protocol/cni_args.h"
#include "cni/state/tenants.h"
#include "deviceplugin/node/topology/topology.h"
#include "deviceplugin/node/topology/topology_config.h"
#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reconcile/address_facts.h"
#include "ipam/store/range.h"
#include "netns/base/node.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

constexpr const char* kDeviceHistory =
    "the node keeps only the last pod of a device, until the device is reset or the node boots";
constexpr const char* kAddressHistory =
    "the node keeps only the last container of an address, until the reuse delay is over";

using TopologyPointer = std::shared_ptr<const topology::Topology>;

Result<TopologyPointer> ReadTopology(const Root& root, const inventory::Inventory& inventory) {
  const auto config = RH_TRY(topology::ReadTopologyConfig(root));
  return topology::Topology::Read(root, inventory, config);
}

std::vector<std::string> NearestGpus(const topology::Topology& topology, const PciAddress& function) {
  const auto nic = topology.NicIndex(function);
  std::vector<std::string> nearest;
  if (!nic) return nearest;
  auto best = PciPath::kSys;
  for (std::size_t i = 0; i < topology.accelerators().size(); ++i) {
    const PciPath path = topology.NicToAccelerator(*nic, i);
    if (Nearer(path, best)) nearest.clear();
    if (Nearer(best, path)) continue;
    best = path;
    nearest.push_back("GPU" + std::to_string(i) + " " + topology.accelerators()[i].address.ToString() + " " +
                      std::string(NameOf(path)));
  }
  return nearest;
}

// Describes the devices of one node.
class DeviceDescriber {
 public:
  DeviceDescriber(const Root& root, const NodeRecords& records, std::vector<std::string>* notes)
      : root_(root), records_(records) {
    auto topology = ReadTopology(root, *records.inventory);
    if (topology) {
      topology_ = *std::move(topology);
    } else {
      notes->push_back("the nearest GPUs are not known: " + topology.error().message);
    }
  }

  [[nodiscard]] DescribedDevice Of(const std::string& id) const {
    DescribedDevice device;
    device.device = id;
    const inventory::NicFunction* function = records_.inventory->Find(id);
    if (function != nullptr) AddFunction(*function, &device);
    AddHealth(&device);
    if (const auto holder = records_.HolderOf(id)) {
      AddHolder(*holder, function == nullptr, &device);
    } else if (const auto tenant = ReadTenant(root_, id); tenant && *tenant) {
      device.last_pod = (*tenant)->pod;
    }
    return device;
  }

 private:
  void AddFunction(const inventory::NicFunction& function, DescribedDevice* device) const {
    device->kind = function.is_vf ? SubjectKind::kVf : SubjectKind::kPf;
    if (function.kind == inventory::FunctionKind::kAuxiliary) device->kind = SubjectKind::kSubfunction;
    if (function.kind == inventory::FunctionKind::kAccelerator) device->kind = SubjectKind::kAccelerator;
    device->rail = records_.RailOf(function);
    device->pf = function.pf.ToString();
    device->pf_name = function.pf_name;
    if (function.vf_index >= 0) device->vf = function.vf_index;
    device->rdma_device = function.rdma_device;
    device->driver = function.driver;
    device->numa_node = function.numa_node;
    if (topology_) device->gpus = NearestGpus(*topology_, function.address);
    if (const auto* heard = records_.NeighborOf(device->pf))
      device->switch_port = heard->neighbor.SwitchName() + "/" + heard->neighbor.Port();
    if (const health::Drain* drain = records_.DrainOf(function)) device->drain = *drain;
    if (const auto why = records_.not_offered.find(function.id); why != records_.not_offered.end())
      device->not_offered = why->second;
    const Rail* rail = records_.fabric ? records_.fabric->FindRail(device->rail) : nullptr;
    if (rail != nullptr) device->vlan = rail->vlan;
    AddNetdev(function, device);
  }

  void AddNetdev(const inventory::NicFunction& function, DescribedDevice* device) const {
    const auto netdevs = OwnNetdevsOf(root_, function.address);
    if (function.kind != inventory::FunctionKind::kNetwork || !netdevs || netdevs->empty()) return;
    device->netdev = netdevs->front();
    const auto mac = ReadAttribute(root_.Path("/sys/class/net/" + device->netdev + "/address"));
    if (mac && *mac) device->mac = MacAddress::Parse(**mac);
  }

  void AddHealth(DescribedDevice* device) const {
    const health::DeviceHealth* health = records_.HealthOf(device->device);
    if (health == nullptr) return;
    device->healthy = health->healthy;
    device->state_since = health->since;
    device->reasons = health->reasons;
  }

  // `only_source`: the device is not in the inventory.
  static void AddHolder(const DeviceHolder& holder, bool only_source, DescribedDevice* device) {
    const JournalEntry& entry = *holder.entry;
    const AttachedDevice& link = *holder.device;
    if (only_source) {
      device->kind = link.pf.empty() ? SubjectKind::kPf : SubjectKind::kVf;
      device->rail = link.rail;
      device->pf = link.pf;
      if (link.vf >= 0) device->vf = link.vf;
    }
    device->pod = PodName(entry.cni_args);
    device->container = entry.key.container_id;
    device->network = entry.key.network;
    device->interface = link.pod_name;
    device->held_since = WallTime(entry.since);
    device->unfinished = entry.phase != Phase::kDone;
    device->addresses = link.addressing.addresses;
    device->netdev = link.before.name;
    if (!link.rdma.device.empty()) device->rdma_device = link.rdma.device;
    const MacAddress requested = MacOf(link.requested.vf);
    device->mac = requested.IsZero() ? link.before.mac : requested;
    if (link.requested.vf.vlan) {
      const int id = link.requested.vf.vlan->id;
      device->vlan = id == 0 ? std::nullopt : std::optional(id);
    }
  }

  const Root& root_;
  const NodeRecords& records_;
  TopologyPointer topology_;
};

// The rail whose subnet has the address; nullptr: none has.
const Rail* RailOfAddress(const NodeRecords& records, const IpAddress& address) {
  if (!records.fabric) return nullptr;
  const auto& rails = records.fabric->rails;
  const auto found = std::ranges::find_if(
      rails, [&](const Rail& rail) { return rail.subnet && rail.subnet->Contains(address); });
  return found == rails.end() ? nullptr : &*found;
}

void AddAttachment(const NodeRecords& records, DescribedAddress* described) {
  for (const JournalEntry& entry : records.journal.entries) {
    for (const AttachedDevice& device : entry.devices) {
      if (!Contains(device.addressing.addresses, described->address, &IpPrefix::address)) continue;
      described->state = "held";
      described->rail = device.rail;
      described->pod = PodName(entry.cni_args);
      described->container = entry.key.container_id;
      described->network = entry.key.network;
      described->interface = device.pod_name;
      described->since = WallTime(entry.since);
    }
  }
}

void AddRecord(const NodeRecords& records, const KnownAddress& known, DescribedAddress* described) {
  const ipam::AddressRecord& record = known.record;
  described->state = known.leak.empty() ? StateOf(record) : "leaked";
  described->pool = record.pool;
  described->leak = known.leak;
  described->since = WallTime(record.wall_seconds);
  if (described->container.empty()) {
    described->container = record.owner.container;
    described->network = record.owner.network;
    described->interface = std::string(ipam::AttachmentIfname(record.owner));
    described->pod = known.pod;
  }
  if (record.state == ipam::AddressState::kQuarantined) {
    described->until = *described->since + std::chrono::milliseconds(
                                               record.until_ms - std::min(record.until_ms, record.since_ms));
  } else if (record.state == ipam::AddressState::kCoolingDown && records.fabric) {
    const int delay = records.fabric->reuse_delay_seconds.value_or(kDefaultReuseDelaySeconds);
    described->until = *described->since + std::chrono::seconds(delay);
  }
}

bool HasRange(const std::vector<IpRange>& ranges, const IpAddress& address) {
  return std::ranges::any_of(ranges, [&](const IpRange& range) { return range.Contains(address); });
}

// The index of the range or block that the address is in; nullopt: it is in none.
std::optional<int> IndexOfRange(const Rail& rail, const IpAddress& address) {
  for (int index = 0; index <= static_cast<int>(node_index::kLastIndex); ++index) {
    if (HasRange(rail.RangesOf("", index), address)) return index;
  }
  return std::nullopt;
}

// Of a node that claims its index.
std::optional<IpAddress> ProbeAddressOf(const Rail& rail, int index) {
  const auto of_index = rail.ProbeAddressesOf({{"", index}});
  return of_index.empty() ? std::nullopt : std::optional(of_index.begin()->second);
}

// The index whose node probes from the address.
std::optional<int> IndexOfProbe(const Rail& rail, const IpAddress& address) {
  const auto first = rail.indices ? rail.indices->first : 0;
  const auto index = rail.probe_range && rail.probe_range->Contains(address)
                         ? std::optional(first + static_cast<int>(*address.Minus(rail.probe_range->first)))
                     : rail.probe_place ? IndexOfRange(rail, address)
                                        : std::nullopt;
  return index && ProbeAddressOf(rail, *index) == address ? index : std::nullopt;
}

// In whose range it is: a node of fabric.json, or one that has claimed the index of the range.
void AddOwner(const Fabric& fabric, const Rail& rail, DescribedAddress* described) {
  described->state = "other node's";
  for (const auto& [node, index] : fabric.nodes) {
    if (!HasRange(rail.RangesOf(node, index), described->address)) continue;
    described->node = node;
    described->node_index = index;
    return;
  }
  for (const auto& [key, ranges] : rail.node_ranges) {
    if (ParseInt(key) || !HasRange(ranges, described->address)) continue;
    described->node = key;
    return;
  }
  if (fabric.ClaimsIndices()) described->node_index = IndexOfRange(rail, described->address);
  if (!described->node_index) described->state = "no node's";
}

// Of an address that nobody has.
void AddRail(const NodeRecords& records, const Rail& rail, const std::string& node,
             DescribedAddress* described) {
  const IpAddress& address = described->address;
  described->rail = rail.name;
  const IpPrefix network = rail.NetworkOf(address);
  described->pool = network.Network().ToString();
  for (const IpRange& range : rail.RangesOf(node, records.index)) {
    if (range.Contains(address)) described->range = range.ToString();
  }
  if (!described->state.empty()) return;
  if (rail.GatewayOf(network) == address) {
    described->state = "gateway";
    return;
  }
  for (const auto& [of, probe] : rail.ProbeAddressesOf(records.fabric->nodes)) {
    if (probe != address) continue;
    described->state = "probe address";
    described->node = of;
    return;
  }
  if (const auto index = records.fabric->ClaimsIndices() ? IndexOfProbe(rail, address) : std::nullopt) {
    described->state = "probe address";
    described->node_index = index;
    return;
  }
  const auto usable = ipam::RangeSet::Make({network, {}, rail.Excluded(), rail.GatewayOf(network)});
  if (usable && !usable->Contains(address)) {
    described->state = "excluded";
  } else if (!described->range.empty()) {
    described->state = "free";
  } else {
    AddOwner(*records.fabric, rail, described);
  }
}

// The node that has claimed an index, as far as probes have shown it to railheadd; "": it is not known.
std::string NodeOfClaim(const Root& root, const Fabric& fabric, int index) {
  const auto report = reachability::ReadReachabilityReport(root);
  if (!report || !*report) return {};
  for (const reachability::RailReachability& seen : (*report)->rails) {
    const Rail* rail = fabric.FindRail(seen.rail);
    const auto address = rail == nullptr ? std::nullopt : ProbeAddressOf(*rail, index);
    if (!address) continue;
    if (seen.probe_address == address) return (*report)->node;
    const auto peer = std::ranges::find(seen.peers, *address, &reachability::PeerReachability::address);
    if (peer != seen.peers.end()) return peer->node;
  }
  return {};
}

// Of an address of a node that claims its index.
void AddClaimant(const Root& root, const Fabric& fabric, DescribedAddress* described,
                 std::vector<std::string>* notes) {
  described->node = NodeOfClaim(root, fabric, *described->node_index);
  if (described->node.empty()) {
    notes->push_back("which node has claimed this index: kubectl get nodeindices node-" +
                     std::to_string(*described->node_index));
  }
}

Result<void> AddEvents(const Root& root, DescribedAddress* described) {
  const auto facts = RH_TRY(reconcile::ReadAddressFacts(root, 0));
  for (const ipam::AddressEvent& event : facts.events) {
    if (event.address != described->address) continue;
    described->events.push_back(FormatTime(WallTime(event.wall_seconds)) + " " + reconcile::Sentence(event));
  }
  return {};
}

Result<DescribedAddress> AddressOf(const Root& root, const NodeRecords& records, const IpAddress& address,
                                   std::vector<std::string>* notes) {
  auto described = DescribeAddress(records, NodeName(root).value_or(""), address);
  if (!described) {
    std::vector<std::string> subnets;
    for (const Rail& rail : records.fabric ? records.fabric->rails : std::vector<Rail>()) {
      if (rail.subnet) subnets.push_back(rail.name + " " + rail.subnet->Network().ToString());
    }
    return Fail(ErrorCode::kNotFound,
                address.ToString() + " is in no subnet of this node's rails, and no pod has it",
                subnets.empty() ? "fabric.json has no subnets" : "the subnets are " + Join(subnets, ", "));
  }
  if (described->node_index && described->node.empty())
    AddClaimant(root, *records.fabric, &*described, notes);
  if (const auto added = AddEvents(root, &*described); !added)
    notes->push_back("not all of the address store could be read: " + added.error().message);
  notes->emplace_back(kAddressHistory);
  return *std::move(described);
}

DescribedPod DescribePod(const NodeRecords& records, const Subject& subject) {
  DescribedPod pod;
  pod.containers = subject.containers;
  for (const JournalEntry& entry : records.journal.entries) {
    if (!Contains(subject.containers, entry.key.container_id)) continue;
    pod.pod = PodName(entry.cni_args);
    pod.uid = PodUid(entry.cni_args);
    pod.netns = entry.netns;
    const auto since = WallTime(entry.since);
    pod.since = pod.since ? std::min(*pod.since, since) : since;
  }
  // kubelet knows only the UID of a pod without an attachment.
  if (pod.pod.empty() && subject.kind == SubjectKind::kPod) pod.uid = subject.name;
  return pod;
}

// Devices that kubelet has allocated to the pod, and that none of its attachments has.
std::vector<std::string> NotAttached(const NodeRecords& records, const DescribedPod& pod) {
  std::vector<std::string> ids;
  for (const ContainerDevices& allocation : records.allocations) {
    if (pod.uid.empty() || allocation.pod_uid != pod.uid) continue;
    for (const std::string& id : allocation.ids) {
      const bool attached = std::ranges::any_of(records.journal.entries, [&](const JournalEntry& entry) {
        return Contains(pod.containers, entry.key.container_id) &&
               Contains(entry.devices, id, &AttachedDevice::KubeletId);
      });
      if (!attached && records.inventory->Find(id) != nullptr) ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace

std::string DescribedDevice::Health() const {
  if (!healthy) return {};
  return *healthy ? health::kHealthy : health::kUnhealthy;
}

std::string DescribedDevice::DrainText() const {
  if (!drain) return {};
  return drain->name + (drain->reason.empty() ? "" : ": " + drain->reason);
}

std::string DescribedAddress::UntilText() const {
  return until ? FormatTime(*until) : std::string();
}

std::optional<DescribedAddress> DescribeAddress(const NodeRecords& records, const std::string& node,
                                                const IpAddress& address) {
  DescribedAddress described;
  described.address = address;
  AddAttachment(records, &described);
  for (const KnownAddress& known : records.addresses.addresses) {
    if (known.record.address == address) AddRecord(records, known, &described);
  }
  if (const Rail* rail = RailOfAddress(records, address)) AddRail(records, *rail, node, &described);
  if (described.state.empty()) return std::nullopt;
  return described;
}

Result<Description> DescribeSubject(const Root& root, const NodeRecords& records, const Subject& subject) {
  Description description;
  description.kind = subject.kind;
  description.name = subject.name;
  for (const Error& error : records.unread) description.notes.push_back("not read: " + Describe(error));
  const DeviceDescriber describer(root, records, &description.notes);
  std::vector<std::string> devices = subject.devices;
  if (subject.kind == SubjectKind::kPf) {
    for (const inventory::NicFunction& function : records.inventory->functions) {
      if (function.is_vf && function.pf.ToString() == subject.name) devices.push_back(function.id);
    }
  }
  for (const std::string& id : devices) description.devices.push_back(describer.Of(id));
  if (subject.address) {
    description.address = RH_TRY(AddressOf(root, records, *subject.address, &description.notes));
  } else if (subject.IsDevice()) {
    description.notes.emplace_back(kDeviceHistory);
    if (devices.empty()) description.notes.push_back("this node has no PF on " + subject.name);
  } else {
    description.pod = DescribePod(records, subject);
    if (!description.pod->since)
      description.notes.emplace_back(
          "it has no attachment of this boot: see railctl journal list and railctl ipam list");
    const auto ids = NotAttached(records, *description.pod);
    if (!ids.empty()) {
      const std::string& pod = description.pod->pod.empty() ? description.pod->uid : description.pod->pod;
      description.notes.push_back("kubelet has allocated " + Join(ids, ", ") +
                                  ", which no attachment has yet: see railctl why " + pod);
    }
  }
  return description;
}

}  // namespace railhead::railctl
