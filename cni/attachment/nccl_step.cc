#include "cni/attachment/nccl_step.h"

#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cni/attachment/rdma.h"
#include "cni/nccl/nccl_config.h"
#include "cni/nccl/nccl_path.h"
#include "cni/nccl/stack_files.h"
#include "cni/nccl/topology_file.h"
#include "cni/state/allocation.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/sys/device_nodes.h"

namespace railhead::attachment {
namespace {

constexpr auto kSandboxLockLimit = std::chrono::seconds(30);
constexpr std::size_t kSandboxLocks = 64;
constexpr const char* kRdmaCm = "/dev/infiniband/rdma_cm";

// In the order of the devices: this attachment's and those of the sandbox's others that are finished.
Result<std::vector<AttachedDevice>> DevicesOfSandbox(const Journal& journal, const JournalEntry& entry) {
  std::vector<AttachedDevice> devices = entry.devices;
  for (const auto& sibling : RH_TRY(journal.SiblingsOf(entry.key))) {
    if (sibling.phase != Phase::kDone) continue;
    devices.insert(devices.end(), sibling.devices.begin(), sibling.devices.end());
  }
  std::ranges::sort(devices, {}, &AttachedDevice::device);
  return devices;
}

// What a container needs to use the device.
Result<void> AddDeviceNodes(const Root& root, const AttachedDevice& device, CdiDevice* spec) {
  if (device.before.user_space) {
    const UserSpace kind = UserSpaceOf(device.before.driver);
    for (const auto& [host, inside] : RH_TRY(UserSpaceNodesOf(root, device.device, kind))) {
      if (host == inside) spec->device_nodes.push_back(inside);
      if (host != inside) spec->renamed_nodes.push_back({host, inside});
    }
    return {};
  }
  if (device.rdma.uverbs.empty()) return {};
  spec->device_nodes.push_back("/dev/infiniband/" + device.rdma.uverbs);
  if (Exists(root.Path(kRdmaCm))) spec->device_nodes.emplace_back(kRdmaCm);
  return {};
}

// What Allocate could not say of slots: by resource, the devices that the pod has. Of several
// devices of a container one value of a variable wins, so it is the same in all of them.
std::vector<std::string> LateVariables(const std::vector<AttachedDevice>& devices) {
  std::map<std::string, std::vector<std::string>> by_resource;
  for (const auto& device : devices) {
    if (!device.resource.empty()) by_resource[device.resource].push_back(device.device);
  }
  std::vector<std::string> variables;
  variables.reserve(by_resource.size());
  for (auto& [resource, all] : by_resource) {
    std::ranges::sort(all);
    variables.push_back(PcideviceVariable(resource) + "=" + Join(all, ","));
  }
  return variables;
}

// The specs of earlier attachments, too, where what all containers share is another now.
Result<void> WriteCdi(const Root& root, const std::string& container,
                      const std::vector<AttachedDevice>& devices, const HandoffContent& content) {
  std::vector<CdiMount> mounts;
  for (const auto& file : content.files) {
    for (const auto& inside : file.in_container)
      mounts.push_back({nccl::HandoffPath(root, container, file.name), inside});
  }
  const auto late = LateVariables(devices);
  for (const auto& device : devices) {
    CdiDevice spec;
    spec.name = device.KubeletId();
    RH_TRY(AddDeviceNodes(root, device, &spec));
    if (!device.slot.empty()) spec.env = late;
    if (device.InNcclConf()) {
      spec.mounts = mounts;
      spec.env.insert(spec.env.end(), content.env.begin(), content.env.end());
    }
    RH_TRY(WriteCdiSpec(root, spec));
  }
  return {};
}

Result<void> WriteFiles(const Root& root, const AttachPlan& plan, const std::string& container,
                        const HandoffContent& content, const std::vector<AttachedDevice>& devices) {
  if (content.files.empty()) return {};
  RH_TRY(WriteHandoff(root, container, content.files));
  const bool mounted = std::ranges::any_of(plan.devices, [](const DevicePlan& device) {
    return device.allocation && device.allocation->delivery == Delivery::kMount;
  });
  if (!mounted) return {};
  for (const auto& device : devices) {
    if (device.nccl.wanted) RH_TRY(nccl::WriteDeviceHandoff(root, device.device, content.files.front().text));
  }
  return {};
}

Result<void> Finish(const Journal& journal, JournalEntry& entry) {
  entry.phase = Phase::kDone;
  return journal.Write(entry);
}

}  // namespace

// Lock files are never removed, so sandboxes share a fixed number of them. The plugin and railheadd, built by
// different compilers, have to agree on the number.
Result<FileLock> LockSandbox(const Root& root, const std::string& container,
                             std::chrono::milliseconds limit) {
  const std::size_t number = Fnv1a64(container) % kSandboxLocks;
  return WithContext(FileLock::Acquire(paths::Lock(root, "sandbox-" + std::to_string(number)), limit),
                     "waiting for other attachments of sandbox " + container);
}

Result<void> FinishWithHandoff(const Root& root, const Journal& journal, Kernel& kernel, PodNetwork& network,
                               const AttachPlan& plan, JournalEntry& entry) {
  const std::string& container = entry.key.container_id;
  const FileLock lock = RH_TRY(LockSandbox(root, container, kSandboxLockLimit));
  const auto devices = RH_TRY(DevicesOfSandbox(journal, entry));
  const auto content =
      RH_TRY_WRAP(HandoffContentOf(root, kernel, network, plan, devices), "making the handoff");
  // The shared files last: a NIC that fails on the way is not left in them.
  RH_TRY_WRAP(WriteCdi(root, container, devices, content), "writing the CDI spec");
  RH_TRY_WRAP(WriteFiles(root, plan, container, content, devices), "writing the handoff");
  return Finish(journal, entry);
}

Result<void> RemoveHandoffOf(const Root& root, const Journal& journal, const JournalEntry& entry) {
  const FileLock lock = RH_TRY(LockSandbox(root, entry.key.container_id, kSandboxLockLimit));
  for (const auto& device : entry.devices) {
    RH_TRY(RemoveCdiSpec(root, device.KubeletId()));
    RH_TRY(nccl::ClearDeviceHandoff(root, device.device));
  }
  const bool last = !RH_TRY(journal.HasSiblings(entry.key));
  return last ? nccl::RemoveHandoff(root, entry.key.container_id) : Result<void>();
}

namespace {

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

Result<std::vector<GidEntry>> TableOf(Kernel& kernel, const NetNs& pod, const nccl::HandoffNic& nic) {
  auto table = RH_TRY(kernel.ReadGids(pod, nic.rdma_device));
  if (!table) return Fail(ErrorCode::kNotFound, "RDMA device " + nic.rdma_device + " has left the pod");
  return *std::move(table);
}

// Of the VF as the pod has it; 0: none.
std::uint32_t RateOf(const AttachedDevice& device) {
  if (device.wanted.vf.rate) return device.wanted.vf.rate->max;
  const auto& before = device.before.vf;
  return before && before->rate ? before->rate->max : 0;
}

// Of those that NCCL is told to use.
struct Nics {
  std::vector<nccl::HandoffNic> handoff;
  std::vector<nccl::NcclNic> places;
  std::vector<nccl::TopologyFileNic> topology;
};

Result<Nics> NicsOf(const std::vector<AttachedDevice>& devices) {
  Nics nics;
  for (const auto& device : devices) {
    const AttachedDevice::Rdma& rdma = device.rdma;
    const IpAddress* address = GidAddressOf(device);
    if (address == nullptr || !rdma.gid_index) continue;
    const auto place = PciAddress::Parse(device.device);
    if (!place) return Fail(ErrorCode::kMalformed, "the journal has a device " + device.device);
    nics.handoff.push_back(
        {rdma.device, *address, *rdma.gid_index, device.nccl.traffic_class, device.nccl.service_level});
    // Soft RoCE has no place in PCI, which NCCL takes as it is; the fabric can ask for a file.
    if (!rdma.soft) nics.places.push_back({rdma.device, *place});
    nics.topology.push_back({rdma.device, *place, RateOf(device)});
  }
  return nics;
}

// Bootstrap traffic does not belong on a rail.
Result<std::string> SocketInterface(RouteApi& pod, const std::vector<AttachedDevice>& devices) {
  std::string name = RH_TRY(ClusterInterface(pod));
  const bool is_ours = Contains(devices, name, &AttachedDevice::pod_name);
  return is_ours ? std::string() : name;
}

Result<std::optional<std::string>> TopologyOf(const Root& root, TopologyPolicy policy,
                                              const nccl::NcclView& view,
                                              std::vector<nccl::TopologyFileNic> nics) {
  const bool wanted =
      policy == TopologyPolicy::kAlways || (policy == TopologyPolicy::kNeeded && view.NeedsTopologyFile());
  if (!wanted) return std::nullopt;
  auto text = nccl::TopologyText(root, {std::move(nics), std::nullopt});
  if (text) return *std::move(text);
  Error error = Wrap(text.error(), "NCCL needs a topology file to find the pod's NICs");
  if (error.hint.empty()) error.hint = "\"handoff\": {\"topology\": \"never\"} in fabric.json does without";
  return Fail(std::move(error));
}

void AddVariables(const std::vector<nccl::HandoffLine>& lines, std::vector<std::string>& env) {
  for (const auto& [name, value] : lines) env.push_back(std::string(name).append("=").append(value));
}

Result<void> AddStacks(const std::set<HandoffStack>& stacks, const nccl::Handoff& handoff,
                       const nccl::GidTableReader& table_of, HandoffContent& content) {
  if (stacks.contains(HandoffStack::kRccl))
    content.files.front().in_container.emplace_back(nccl::kRcclConfInContainer);
  if (stacks.contains(HandoffStack::kUcx)) {
    // Apart: a return out of braces leaks what they have made.
    auto conf = RH_TRY(UcxConf(handoff, table_of));
    content.files.push_back({nccl::kUcxConfName, {nccl::kUcxConfInContainer}, std::move(conf)});
    // UCX looks there by itself only where it is installed below /usr.
    content.env.push_back(std::string("UCX_CONFIG_DIR=") + nccl::kUcxDirectoryInContainer);
  }
  if (stacks.contains(HandoffStack::kNvshmem)) AddVariables(NvshmemVariables(handoff), content.env);
  if (stacks.contains(HandoffStack::kGloo)) AddVariables(GlooVariables(handoff), content.env);
  if (stacks.contains(HandoffStack::kOpenMpi)) AddVariables(OpenMpiVariables(handoff), content.env);
  return {};
}

}  // namespace

Result<HandoffContent> HandoffContentOf(const Root& root, Kernel& kernel, PodNetwork& network,
                                        const AttachPlan& plan, std::vector<AttachedDevice> devices) {
  HandoffContent content;
  // A pod can have NICs that are not for NCCL beside those that are.
  std::erase_if(devices, [](const auto& device) { return !device.nccl.wanted; });
  Nics nics = RH_TRY(NicsOf(devices));
  if (nics.handoff.empty()) return content;
  const nccl::NcclView view = RH_TRY(NcclViewOf(root, std::move(nics.places)));
  const auto table_of = [&](const nccl::HandoffNic& nic) { return TableOf(kernel, network.pod_ns, nic); };
  nccl::Handoff handoff;
  handoff.gids = RH_TRY(SelectGids(nics.handoff, table_of));
  handoff.nics = std::move(nics.handoff);
  handoff.paths = view.Variables();
  handoff.socket_ifname = RH_TRY(SocketInterface(*network.pod, devices));
  handoff.env = plan.handoff.Lines();
  auto conf = RH_TRY(NcclConf(handoff));
  content.files.push_back({nccl::kNcclConfName, {nccl::kNcclConfInContainer}, std::move(conf)});
  RH_TRY(AddStacks(plan.handoff.stacks, handoff, table_of, content));
  auto topology = RH_TRY(TopologyOf(root, plan.handoff.topology, view, std::move(nics.topology)));
  if (topology)
    content.files.push_back({nccl::kTopologyName, {nccl::kNcclTopologyInContainer}, *std::move(topology)});
  return content;
}

Result<void> PlanNcclConfig(const Root& root, HandoffWish wish, DevicePlan& plan) {
  AttachedDevice& record = plan.record;
  plan.allocation = RH_TRY(ReadAllocation(root, record.KubeletId()));
  if (!record.slot.empty() && plan.allocation) record.resource = plan.allocation->resource;
  const bool by_record = plan.allocation && plan.allocation->handoff == HandoffPolicy::kRequired;
  plan.handoff_required = wish == HandoffWish::kRequired || (wish == HandoffWish::kAuto && by_record);
  const bool wanted =
      wish == HandoffWish::kRequired || (wish == HandoffWish::kAuto && (!plan.allocation || by_record));
  record.nccl.wanted = wanted && !record.rdma.device.empty();
  if (plan.handoff_required && record.rdma.device.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "a handoff is required, but device " + record.device + " has no RDMA device",
                "load the NIC's RDMA driver, or set softRoce on the rail, or \"handoff\": \"off\"");
  }
  return {};
}

}  // namespace railhead::attachment
