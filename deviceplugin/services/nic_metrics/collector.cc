#include "deviceplugin/services/nic_metrics/collector.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "cni/attachment/pod_network.h"
#include "cni/protocol/cni_args.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/sys/ethtool_stats.h"
#include "netns/sys/netdev_sysfs.h"
#include "netns/sys/pci.h"

namespace railhead::nic_metrics {
namespace {

void StoreLink(const PfTraffic& link, NicSample* nic) {
  nic->traffic = link.traffic;
  nic->carrier = link.carrier;
  nic->carrier_changes = link.carrier_changes;
}

bool IsNothing(const Traffic& traffic) {
  return traffic.rx_packets == 0 && traffic.tx_packets == 0 && traffic.rx_bytes == 0 && traffic.tx_bytes == 0;
}

// Whether any VF has counted anything. If the PF's driver has no ndo_get_vf_stats, the kernel sends zeros for
// all of its VFs. They must not appear as the counters of a busy VF.
bool Counts(const std::vector<VfTraffic>& vfs) {
  return std::ranges::any_of(vfs, [](const VfTraffic& vf) { return !IsNothing(vf.traffic); });
}

// "speed" is in Mbit/s. Without a link it is -1, or sysfs has no value.
std::optional<std::uint64_t> SpeedOf(const Root& root, const std::string& netdev) {
  const auto text = ReadNetdevAttribute(root, netdev, "speed");
  if (!text || !*text) return std::nullopt;
  const auto megabits = ParseInt(**text);
  if (!megabits || *megabits <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(*megabits) * 125'000;
}

void Note(Result<void> done, const std::string& what, std::vector<Error>* problems) {
  if (!done) problems->push_back(Wrap(std::move(done.error()), what));
}

}  // namespace

Result<void> NicCollector::OpenHost() {
  if (host_) return {};
  host_ns_ = RH_TRY(kernel_.HostNetns());
  host_ = RH_TRY(open_(*host_ns_));
  return {};
}

Result<NicCollector::RdmaDevices> NicCollector::RdmaDevicesOf(const NetNs& ns) {
  RdmaDevices devices;
  auto rdma = kernel_.OpenRdma(ns);
  if (!rdma && rdma.error().code == ErrorCode::kUnsupported) return devices;
  if (!rdma) return Fail(std::move(rdma.error()));
  for (RdmaDevice& device : RH_TRY((*rdma)->ListDevices())) devices.emplace(device.name, std::move(device));
  return devices;
}

Result<void> NicCollector::ReadRdma(CounterSource* source, const RdmaDevices& devices, NicSample* nic) {
  const auto device = devices.find(nic->rdma_device);
  if (device == devices.end()) return {};
  nic->rdma_seen = true;
  nic->rdma_active = device->second.active;
  if (auto counters = RH_TRY(source->Rdma(device->second.index))) nic->rdma = *std::move(counters);
  return {};
}

Result<void> NicCollector::ReadPort(NicSample* port, Nics* nics) {
  const auto link = RH_TRY(host_->Link(port->pf));
  if (!link) return {};
  StoreLink(*link, port);
  if (link->carrier) port->speed = SpeedOf(root_, port->pf);
  if (Counts(link->vfs)) {
    std::map<int, const Traffic*> by_index;
    for (const VfTraffic& vf : link->vfs) by_index.emplace(vf.vf, &vf.traffic);
    for (auto& [device, nic] : *nics) {
      if (!nic.vf || nic.pf != port->pf) continue;
      const auto counted = by_index.find(*nic.vf);
      if (counted != by_index.end()) nic.by_pf = *counted->second;
    }
  }
  const auto& names = PriorityCounterNames(port->driver);
  if (!names.empty())
    port->priorities = PriorityCountsOf(port->driver, RH_TRY(host_->Driver(port->pf, names)));
  return {};
}

Result<void> NicCollector::ReadPod(const JournalEntry& entry, Nics* nics) {
  const auto ns = RH_TRY(attachment::OpenPodOf(kernel_, entry));
  if (!ns) return {};
  const auto source = RH_TRY(open_(*ns));
  std::optional<RdmaDevices> devices;
  for (const AttachedDevice& link : entry.devices) {
    const auto found = nics->find(link.device);
    if (found == nics->end()) continue;
    NicSample& nic = found->second;
    if (!link.before.user_space) {
      if (const auto traffic = RH_TRY(source->Link(link.pod_name))) StoreLink(*traffic, &nic);
    }
    // Exclusive mode: only its own namespace sees the device.
    if (nic.rdma_device.empty() || !link.rdma.moved) continue;
    if (!devices) devices = RH_TRY(RdmaDevicesOf(*ns));
    RH_TRY(ReadRdma(source.get(), *devices, &nic));
  }
  return {};
}

void NicCollector::Count(const JournalCache::Entries& attachments, Nics* nics, std::vector<Error>* problems) {
  if (auto opened = OpenHost(); !opened) {
    problems->push_back(std::move(opened.error()));
    return;
  }
  RdmaDevices devices;
  if (auto listed = RdmaDevicesOf(*host_ns_)) {
    devices = *std::move(listed);
  } else {
    problems->push_back(std::move(listed.error()));
  }
  for (auto& [device, nic] : *nics) {
    if (!nic.vf && !nic.owner) Note(ReadPort(&nic, nics), "counters of PF " + nic.pf, problems);
    Note(ReadRdma(host_.get(), devices, &nic), "counters of " + nic.rdma_device, problems);
  }
  for (const auto& entry : attachments)
    Note(ReadPod(*entry, nics), "counters of " + entry->key.ToString(), problems);
}

NicReport NicCollector::Collect(const Advertisement& advertisement) {
  NicReport report;
  JournalCache::View journal;
  if (auto read = journal_.Read()) {
    journal = *std::move(read);
  } else {
    report.problems.push_back(std::move(read.error()));
  }
  for (const UnreadableEntry& entry : journal.unreadable) report.problems.push_back(entry.error);
  Nics nics = NicSubjects(root_, advertisement, journal.entries);
  if (open_ != nullptr) Count(journal.entries, &nics, &report.problems);
  report.nics.reserve(nics.size());
  for (auto& [device, nic] : nics) report.nics.push_back(std::move(nic));
  return report;
}

namespace {

using NicsByDevice = std::map<std::string, NicSample>;

std::string DeviceOf(const resources::ResourcePool& pool, const resources::PoolMember& member) {
  return pool.spec.late ? member.function.address.ToString() : member.function.id;
}

std::string RailOf(const resources::ResourcePool& pool, const resources::PoolMember& member) {
  const auto found = pool.spec.rail_names.find(member.function.pf.ToString());
  return found == pool.spec.rail_names.end() ? "" : found->second;
}

std::string DriverOf(const Root& root, const std::string& device) {
  const auto link = ReadLink(root.Path("/sys/bus/pci/devices/") + device + "/driver");
  return link && *link ? (*link)->substr((*link)->rfind('/') + 1) : "";
}

std::string RdmaDeviceOf(const Root& root, const std::string& device) {
  const auto names = ListDirectory(root.Path("/sys/bus/pci/devices/") + device + "/infiniband");
  return names && *names && !(*names)->empty() ? (*names)->front() : "";
}

NicSample PortOf(const Root& root, const resources::ResourcePool& pool, const resources::PoolMember& member) {
  NicSample port;
  port.device = member.function.pf.ToString();
  port.pf = member.function.pf_name;
  port.rail = RailOf(pool, member);
  port.numa_node = member.function.numa_node;
  port.driver = DriverOf(root, port.device);
  port.rdma_device = RdmaDeviceOf(root, port.device);
  return port;
}

NicSample MemberSample(const resources::ResourcePool& pool, const resources::PoolMember& member) {
  NicSample nic;
  nic.device = DeviceOf(pool, member);
  nic.pf = member.function.pf_name;
  if (member.function.is_vf) nic.vf = member.function.vf_index;
  nic.rail = RailOf(pool, member);
  nic.numa_node = member.function.numa_node;
  nic.driver = member.function.driver;
  return nic;
}

// The journal may have a device that is in no pool now, or never was in one.
NicSample LinkSample(const AttachedDevice& link, const NicsByDevice& ports) {
  NicSample nic;
  nic.device = link.device;
  nic.driver = link.before.driver;
  if (link.vf >= 0) nic.vf = link.vf;
  if (link.pf.empty()) nic.pf = link.before.name;
  const auto port = ports.find(link.pf);
  if (port == ports.end()) return nic;
  nic.pf = port->second.pf;
  nic.numa_node = port->second.numa_node;
  return nic;
}

NicOwner OwnerOf(const JournalEntry& entry, const AttachedDevice& link) {
  NicOwner owner;
  owner.attachment = entry.key;
  owner.interface = link.pod_name;
  owner.nccl_config = link.nccl.enabled && link.rdma.gid_index.has_value();
  const std::string pod = PodName(entry.cni_args);
  const std::size_t slash = pod.find('/');
  if (slash != std::string::npos) {
    owner.pod_namespace = pod.substr(0, slash);
    owner.pod = pod.substr(slash + 1);
  }
  return owner;
}

}  // namespace

NicsByDevice NicSubjects(const Root& root, const Advertisement& advertisement,
                         const JournalCache::Entries& attachments) {
  NicsByDevice nics;
  std::map<std::string, std::pair<const resources::ResourcePool*, const resources::PoolMember*>> members;
  for (const auto& pool : advertisement.pools) {
    if (pool->spec.kind == inventory::FunctionKind::kAccelerator) continue;
    for (const resources::PoolMember& member : pool->members) {
      const std::string device = DeviceOf(*pool, member);
      members.try_emplace(device, pool.get(), &member);
      const std::string port = member.function.pf.ToString();
      if (!nics.contains(port)) nics.emplace(port, PortOf(root, *pool, member));
    }
  }
  for (const auto& entry : attachments) {
    for (const AttachedDevice& link : entry->devices) {
      const auto member = members.find(link.device);
      NicSample nic = member == members.end() ? LinkSample(link, nics)
                                              : MemberSample(*member->second.first, *member->second.second);
      if (!link.rail.empty()) nic.rail = link.rail;
      nic.rdma_device = link.rdma.device;
      nic.owner = OwnerOf(*entry, link);
      nics[link.device] = std::move(nic);
    }
  }
  return nics;
}

namespace {

class KernelCounters final : public CounterSource {
 public:
  explicit KernelCounters(NetNs ns) : ns_(std::move(ns)) {}

  Result<std::optional<PfTraffic>> Link(const std::string& netdev) override {
    if (!link_) link_ = RH_TRY(LinkCounters::Open(ns_));
    return link_->Read(netdev);
  }

  Result<std::optional<NamedCounters>> Rdma(std::uint32_t device_index) override {
    if (!rdma_) rdma_ = RH_TRY(RdmaCounters::Open(ns_));
    return rdma_->Read(device_index);
  }

  Result<std::map<std::string, std::uint64_t>> Driver(const std::string& netdev,
                                                      const std::vector<std::string>& names) override {
    if (!driver_) RH_TRY(OpenDriver());
    return driver_->Read(netdev, names);
  }

 private:
  Result<void> OpenDriver() {
    return OpenSocketsIn(ns_, [this]() -> Result<void> {
      driver_ = RH_TRY(EthtoolStats::Open());
      return {};
    });
  }

  NetNs ns_;
  std::optional<LinkCounters> link_;
  std::optional<RdmaCounters> rdma_;
  std::optional<EthtoolStats> driver_;
};

}  // namespace

Result<std::unique_ptr<CounterSource>> OpenKernelCounters(const NetNs& ns) {
  UniqueFd fd(::fcntl(ns.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return FailSys(errno, "keeping " + ns.path());
  return std::unique_ptr<CounterSource>(
      std::make_unique<KernelCounters>(RH_TRY(NetNs::FromFd(std::move(fd), ns.path()))));
}

namespace {

using Kind = PriorityCounter;

// In a name, '#' stands for the priority, 0 to 7.
struct Pattern {
  std::string_view driver;
  std::string_view name;
  Kind counter;
  bool transmit;
};

constexpr Pattern kPatterns[] = {
    {"mlx5_core", "rx_prio#_pause", Kind::kPauseFrames, false},
    {"mlx5_core", "tx_prio#_pause", Kind::kPauseFrames, true},
    {"mlx5_core", "rx_prio#_pause_duration", Kind::kPauseMicroseconds, false},
    {"mlx5_core", "tx_prio#_pause_duration", Kind::kPauseMicroseconds, true},
    {"mlx5_core", "rx_prio#_bytes", Kind::kBytes, false},
    {"mlx5_core", "tx_prio#_bytes", Kind::kBytes, true},
    {"mlx5_core", "rx_prio#_discards", Kind::kDiscards, false},
    {"mlx5_core", "rx_global_pause", Kind::kPauseFrames, false},
    {"mlx5_core", "tx_global_pause", Kind::kPauseFrames, true},
    {"mlx5_core", "rx_global_pause_duration", Kind::kPauseMicroseconds, false},
    {"mlx5_core", "tx_global_pause_duration", Kind::kPauseMicroseconds, true},
    {"bnxt_en", "rx_pfc_ena_frames_pri#", Kind::kPauseFrames, false},
    {"bnxt_en", "tx_pfc_ena_frames_pri#", Kind::kPauseFrames, true},
    {"bnxt_en", "rx_bytes_pri#", Kind::kBytes, false},
    {"bnxt_en", "tx_bytes_pri#", Kind::kBytes, true},
    {"bnxt_en", "rx_pause_frames", Kind::kPauseFrames, false},
    {"bnxt_en", "tx_pause_frames", Kind::kPauseFrames, true},
    {"ice", "rx_priority_#_xoff.nic", Kind::kPauseFrames, false},
    {"ice", "tx_priority_#_xoff.nic", Kind::kPauseFrames, true},
    {"ice", "link_xoff_rx.nic", Kind::kPauseFrames, false},
    {"ice", "link_xoff_tx.nic", Kind::kPauseFrames, true},
    {"i40e", "port.rx_priority_#_xoff", Kind::kPauseFrames, false},
    {"i40e", "port.tx_priority_#_xoff", Kind::kPauseFrames, true},
    {"i40e", "port.link_xoff_rx", Kind::kPauseFrames, false},
    {"i40e", "port.link_xoff_tx", Kind::kPauseFrames, true},
    {"ixgbe", "rx_pb_#_pxoff", Kind::kPauseFrames, false},
    {"ixgbe", "tx_pb_#_pxoff", Kind::kPauseFrames, true},
    {"ixgbe", "rx_flow_control_xoff", Kind::kPauseFrames, false},
    {"ixgbe", "tx_flow_control_xoff", Kind::kPauseFrames, true},
    {"igb", "rx_flow_control_xoff", Kind::kPauseFrames, false},
    {"igb", "tx_flow_control_xoff", Kind::kPauseFrames, true},
};

struct Known {
  Kind counter;
  bool transmit;
  std::optional<int> priority;
};

struct OfDriver {
  std::vector<std::string> names;
  std::map<std::string, Known, std::less<>> known;
};

void Add(OfDriver* driver, std::string name, const Known& known) {
  driver->names.push_back(name);
  driver->known.emplace(std::move(name), known);
}

std::map<std::string, OfDriver, std::less<>> MakeTable() {
  std::map<std::string, OfDriver, std::less<>> table;
  for (const Pattern& pattern : kPatterns) {
    OfDriver& driver = table[std::string(pattern.driver)];
    const std::size_t place = pattern.name.find('#');
    if (place == std::string_view::npos) {
      Add(&driver, std::string(pattern.name), {pattern.counter, pattern.transmit, std::nullopt});
      continue;
    }
    for (int priority = 0; priority < 8; ++priority) {
      std::string name(pattern.name);
      name[place] = static_cast<char>('0' + priority);
      Add(&driver, std::move(name), {pattern.counter, pattern.transmit, priority});
    }
  }
  return table;
}

const OfDriver& Find(const std::string& driver) {
  static const std::map<std::string, OfDriver, std::less<>> kTable = MakeTable();
  static const OfDriver kUnknown;
  const auto found = kTable.find(driver);
  return found == kTable.end() ? kUnknown : found->second;
}

}  // namespace

const std::vector<std::string>& PriorityCounterNames(const std::string& driver) {
  return Find(driver).names;
}

std::vector<PriorityCount> PriorityCountsOf(const std::string& driver,
                                            const std::map<std::string, std::uint64_t>& statistics) {
  std::vector<PriorityCount> counts;
  const OfDriver& of = Find(driver);
  for (const auto& [name, value] : statistics) {
    const auto known = of.known.find(name);
    if (known == of.known.end()) continue;
    counts.push_back({known->second.counter, known->second.transmit, known->second.priority, value});
  }
  return counts;
}

}  // namespace railhead::nic_metrics
