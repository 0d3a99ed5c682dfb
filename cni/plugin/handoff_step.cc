#include "cni/plugin/handoff_step.h"

#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "cni/handoff/files.h"
#include "cni/handoff/nccl_conf.h"
#include "cni/plugin/rdma_step.h"
#include "cni/state/allocation.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/file_lock.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr auto kSandboxLockLimit = std::chrono::seconds(30);
constexpr std::size_t kSandboxLocks = 64;
constexpr const char* kRdmaCm = "/dev/infiniband/rdma_cm";

// The cluster network's interface: where the pod's default route leaves.
Result<std::string> ClusterInterface(RouteApi& pod) {
  for (const int family : {AF_INET, AF_INET6}) {
    const Route* best = nullptr;
    const auto routes = RH_TRY(pod.ListRoutes(family, kTableMain));
    for (const auto& route : routes) {
      const bool is_default = route.destination.length == 0 && route.link != 0;
      if (is_default && (best == nullptr || route.metric < best->metric)) best = &route;
    }
    if (best == nullptr) continue;
    if (const auto link = RH_TRY(pod.FindLink(best->link)); link) return link->name;
  }
  return std::string();
}

// The finished attachments of the sandbox and this one, in the order of the
// devices.
Result<std::vector<AttachedLink>> LinksOfSandbox(const Journal& journal, const JournalEntry& entry) {
  std::vector<AttachedLink> links = entry.links;
  for (const auto& sibling : RH_TRY(journal.OfSandbox(entry.key.container_id))) {
    if (sibling.phase != Phase::kDone || sibling.key == entry.key) continue;
    links.insert(links.end(), sibling.links.begin(), sibling.links.end());
  }
  // A pod can have NICs that are not for NCCL beside those that are.
  links.erase(std::remove_if(links.begin(), links.end(), [](const auto& link) { return !link.handoff; }),
              links.end());
  std::sort(links.begin(), links.end(), [](const auto& a, const auto& b) { return a.device < b.device; });
  return links;
}

// What a container needs to use the device.
Result<std::vector<std::string>> DeviceNodes(const Root& root, const AttachedLink& link) {
  std::vector<std::string> nodes;
  if (link.user_space) {
    // Documentation/driver-api/vfio.rst: the container's node and the group's.
    const auto group = RH_TRY(ReadLink(root.Path("/sys/bus/pci/devices/" + link.device + "/iommu_group")));
    if (!group || link.driver != "vfio-pci") return nodes;
    nodes.emplace_back("/dev/vfio/vfio");
    nodes.push_back("/dev/vfio/" + group->substr(group->rfind('/') + 1));
    return nodes;
  }
  if (link.uverbs.empty()) return nodes;
  nodes.push_back("/dev/infiniband/" + link.uverbs);
  if (Exists(root.Path(kRdmaCm))) nodes.emplace_back(kRdmaCm);
  return nodes;
}

// What Allocate could not say of slots: by resource, the devices that the pod has. Of several
// devices of a container one value of a variable wins, so it is the same in all of them.
std::vector<std::string> LateVariables(const std::vector<AttachedLink>& links) {
  std::map<std::string, std::vector<std::string>> devices;
  for (const auto& link : links) {
    if (!link.resource.empty()) devices[link.resource].push_back(link.device);
  }
  std::vector<std::string> variables;
  variables.reserve(devices.size());
  for (auto& [resource, all] : devices) {
    std::sort(all.begin(), all.end());
    variables.push_back(PcideviceVariable(resource) + "=" + Join(all, ","));
  }
  return variables;
}

Result<void> WriteCdi(const Root& root, const std::string& container, const std::vector<AttachedLink>& links,
                      const std::vector<std::string>& variables) {
  for (const auto& link : links) {
    CdiDevice device{link.KubeletId(), RH_TRY(DeviceNodes(root, link)), {}, {}};
    if (link.handoff && link.gid_index)
      device.mounts.push_back({HandoffPath(root, container), kNcclConfInContainer});
    if (!link.slot.empty()) device.env = variables;
    RH_TRY(WriteCdiSpec(root, device));
  }
  return {};
}

// Those of the sandbox's earlier attachments too, when there are slots among them.
Result<void> WriteCdiOf(const Root& root, const Journal& journal, const JournalEntry& entry) {
  std::vector<AttachedLink> late;
  const auto add = [&](const JournalEntry& of) {
    std::copy_if(of.links.begin(), of.links.end(), std::back_inserter(late),
                 [](const AttachedLink& link) { return !link.slot.empty(); });
  };
  add(entry);
  if (late.empty()) return WriteCdi(root, entry.key.container_id, entry.links, {});
  for (const auto& sibling : RH_TRY(journal.OfSandbox(entry.key.container_id))) {
    if (sibling.phase == Phase::kDone && !(sibling.key == entry.key)) add(sibling);
  }
  RH_TRY(WriteCdi(root, entry.key.container_id, entry.links, {}));
  return WriteCdi(root, entry.key.container_id, late, LateVariables(late));
}

Result<std::vector<GidEntry>> TableOf(Kernel& kernel, const NetNs& pod, const HandoffNic& nic) {
  auto table = RH_TRY(kernel.ReadGids(pod, nic.rdma_device));
  if (!table) return Fail(ErrorCode::kNotFound, "RDMA device " + nic.rdma_device + " has left the pod");
  return *std::move(table);
}

Result<std::string> TextOf(Kernel& kernel, PodNetwork& network, const AttachPlan& plan,
                           const std::vector<AttachedLink>& links) {
  Handoff handoff;
  for (const auto& link : links) {
    const IpAddress* address = GidAddressOf(link);
    if (address == nullptr || !link.gid_index) continue;
    handoff.nics.push_back(
        {link.rdma_device, *address, *link.gid_index, link.traffic_class, link.service_level});
  }
  const auto table_of = [&](const HandoffNic& nic) { return TableOf(kernel, network.pod_ns, nic); };
  handoff.gids = RH_TRY(SelectGids(handoff.nics, table_of));
  handoff.socket_ifname = RH_TRY(ClusterInterface(*network.pod));
  const bool is_ours = std::any_of(links.begin(), links.end(), [&](const AttachedLink& link) {
    return link.pod_name == handoff.socket_ifname;
  });
  if (is_ours) handoff.socket_ifname.clear();  // bootstrap traffic does not belong on a rail
  handoff.env = plan.handoff_env;
  return NcclConf(handoff);
}

Result<void> WriteNcclConf(const Root& root, Kernel& kernel, PodNetwork& network, const AttachPlan& plan,
                           const JournalEntry& entry, const std::vector<AttachedLink>& links) {
  const std::string text = RH_TRY(TextOf(kernel, network, plan, links));
  RH_TRY(WriteHandoff(root, entry.key.container_id, text));
  const bool mounted = std::any_of(plan.links.begin(), plan.links.end(), [](const LinkPlan& link) {
    return link.allocation && link.allocation->delivery == Delivery::kMount;
  });
  if (!mounted) return {};
  for (const auto& link : links) RH_TRY(WriteDeviceHandoff(root, link.device, text));
  return {};
}

}  // namespace

// Lock files are never removed, so sandboxes share a fixed number of them.
Result<FileLock> LockSandbox(const Root& root, const std::string& container,
                             std::chrono::milliseconds limit) {
  const std::size_t number = std::hash<std::string>{}(container) % kSandboxLocks;
  return WithContext(FileLock::Acquire(paths::Lock(root, "sandbox-" + std::to_string(number)), limit),
                     "waiting for other attachments of sandbox " + container);
}

Result<void> FinishWithHandoff(const Root& root, const Journal& journal, Kernel& kernel, PodNetwork& network,
                               const AttachPlan& plan, JournalEntry& entry) {
  const FileLock lock = RH_TRY(LockSandbox(root, entry.key.container_id, kSandboxLockLimit));
  // The shared file last: a NIC that fails on the way is not left in it.
  RH_TRY_WRAP(WriteCdiOf(root, journal, entry), "writing the CDI spec");
  // Without an address there is nothing to hand over, and the image keeps its file.
  const bool has_gid = std::any_of(entry.links.begin(), entry.links.end(),
                                   [](const AttachedLink& link) { return link.handoff && link.gid_index; });
  if (has_gid) {
    const auto links = RH_TRY(LinksOfSandbox(journal, entry));
    RH_TRY_WRAP(WriteNcclConf(root, kernel, network, plan, entry, links), "writing the handoff");
  }
  entry.phase = Phase::kDone;
  return journal.Write(entry);
}

Result<void> RemoveHandoffOf(const Root& root, const Journal& journal, const JournalEntry& entry) {
  const FileLock lock = RH_TRY(LockSandbox(root, entry.key.container_id, kSandboxLockLimit));
  for (const auto& link : entry.links) {
    RH_TRY(RemoveCdiSpec(root, link.KubeletId()));
    RH_TRY(ClearDeviceHandoff(root, link.device));
  }
  const auto all = RH_TRY(journal.OfSandbox(entry.key.container_id));
  const bool last =
      std::all_of(all.begin(), all.end(), [&](const JournalEntry& other) { return other.key == entry.key; });
  return last ? RemoveHandoff(root, entry.key.container_id) : Result<void>();
}

}  // namespace railhead
