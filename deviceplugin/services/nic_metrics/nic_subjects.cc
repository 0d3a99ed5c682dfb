#include "deviceplugin/services/nic_metrics/nic_subjects.h"

#include "cni/protocol/cni_args.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"

namespace railhead::nic_metrics {
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

}  // namespace railhead::nic_metrics
