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

// Devices of this attachment and of the sandbox's other finished ones, sorted by address.
Result<std::vector<AttachedDevice>> DevicesOfSandbox(const Journal& journal, const JournalEntry& entry) {
  std::vector<AttachedDevice> devices = entry.devices;
  for (const auto& sibling : RH_TRY(journal.SiblingsOf(entry.key))) {
    if (sibling.phase != Phase::kDone) continue;
    devices.insert(devices.end(), sibling.devices.begin(), sibling.devices.end());
  }
  std::ranges::sort(devices, {}, &AttachedDevice::device);
  return devices;
}

// Adds the device nodes that a container needs to use the device.
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

// The variables that Allocate could not set for slots: the pod's devices by resource. A container with
// several devices gets one of their values, so all devices have the same.
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

// Writes the specs of earlier attachments again, too: what all containers share may have changed.
Result<void> WriteCdi(const Root& root, const std::string& container,
                      const std::vector<AttachedDevice>& devices, const NcclConfigContent& content) {
  std::vector<CdiMount> mounts;
  for (const auto& file : content.files) {
    for (const auto& inside : file.in_container)
      mounts.push_back({nccl::NcclConfigPath(root, container, file.name), inside});
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
                        const NcclConfigContent& content, const std::vector<AttachedDevice>& devices) {
  if (content.files.empty()) return {};
  RH_TRY(WriteNcclConfig(root, container, content.files));
  const bool mounted = std::ranges::any_of(plan.devices, [](const DevicePlan& device) {
    return device.allocation && device.allocation->device_nodes == DeviceNodeMode::kMount;
  });
  if (!mounted) return {};
  for (const auto& device : devices) {
    if (device.nccl.enabled)
      RH_TRY(nccl::WriteDeviceNcclConfig(root, device.device, content.files.front().text));
  }
  return {};
}

Result<void> Finish(const Journal& journal, JournalEntry& entry) {
  entry.phase = Phase::kDone;
  return journal.Write(entry);
}

}  // namespace

// Lock files are never removed, so sandboxes share a fixed number of them. The plugin and railheadd must
// compute the same number, also when different compilers built them.
Result<FileLock> LockSandbox(const Root& root, const std::string& container,
                             std::chrono::milliseconds limit) {
  const std::size_t number = Fnv1a64(container) % kSandboxLocks;
  return WithContext(FileLock::Acquire(paths::Lock(root, "sandbox-" + std::to_string(number)), limit),
                     "waiting for other attachments of sandbox " + container);
}

Result<void> FinishWithNcclConfig(const Root& root, const Journal& journal, Kernel& kernel,
                                  PodNetwork& network, const AttachPlan& plan, JournalEntry& entry) {
  const std::string& container = entry.key.container_id;
  const FileLock lock = RH_TRY(LockSandbox(root, container, kSandboxLockLimit));
  const auto devices = RH_TRY(DevicesOfSandbox(journal, entry));
  const auto content =
      RH_TRY_WRAP(BuildNcclConfig(root, kernel, network, plan, devices), "making the NCCL configuration");
  // The shared files last: then they do not name a NIC whose step failed.
  RH_TRY_WRAP(WriteCdi(root, container, devices, content), "writing the CDI spec");
  RH_TRY_WRAP(WriteFiles(root, plan, container, content, devices), "writing the NCCL configuration");
  return Finish(journal, entry);
}

Result<void> RemoveNcclConfigOf(const Root& root, const Journal& journal, const JournalEntry& entry) {
  const FileLock lock = RH_TRY(LockSandbox(root, entry.key.container_id, kSandboxLockLimit));
  for (const auto& device : entry.devices) {
    RH_TRY(RemoveCdiSpec(root, device.KubeletId()));
    RH_TRY(nccl::ClearDeviceNcclConfig(root, device.device));
  }
  const bool last = !RH_TRY(journal.HasSiblings(entry.key));
  return last ? nccl::RemoveNcclConfig(root, entry.key.container_id) : Result<void>();
}

namespace {

Result<std::vector<GidEntry>> TableOf(Kernel& kernel, const NetNs& pod, const nccl::NicConfig& nic) {
  auto table = RH_TRY(kernel.ReadGids(pod, nic.rdma_device));
  if (!table) return Fail(ErrorCode::kNotFound, "RDMA device " + nic.rdma_device + " has left the pod");
  return *std::move(table);
}

// The VF's transmit limit in the pod, in Mbit/s; 0: none.
std::uint32_t RateOf(const AttachedDevice& device) {
  if (device.requested.vf.rate) return device.requested.vf.rate->max;
  const auto& before = device.before.vf;
  return before && before->rate ? before->rate->max : 0;
}

// The NICs in nccl.conf, as each part of the NCCL configuration needs them.
struct Nics {
  std::vector<nccl::NicConfig> configs;
  std::vector<nccl::NcclNic> places;
  std::vector<nccl::TopologyFileNic> topology;
  bool mlx5 = false;  // one at least is driven by mlx5, whose verbs NCCL knows
};

Result<Nics> NicsOf(const std::vector<AttachedDevice>& devices) {
  Nics nics;
  for (const auto& device : devices) {
    const AttachedDevice::Rdma& rdma = device.rdma;
    const IpAddress* address = GidAddressOf(device);
    if (address == nullptr || !rdma.gid_index) continue;
    const auto place = PciAddress::Parse(device.device);
    if (!place) return Fail(ErrorCode::kMalformed, "the journal has a device " + device.device);
    nics.configs.push_back(
        {rdma.device, *address, *rdma.gid_index, device.nccl.traffic_class, device.nccl.service_level});
    nics.places.push_back({rdma.device, *place, rdma.soft});
    nics.mlx5 = nics.mlx5 || (!rdma.soft && device.before.driver.starts_with("mlx5_core"));
    nics.topology.push_back({rdma.device, *place, RateOf(device)});
  }
  return nics;
}

// NCCL 2.28.7 to 2.28.9 look for GPU-initiated networking on mlx5 devices. Without one they go on with the
// plugin pointer -1, and crash (src/plugin/net.cc, ncclNetPluginAssignToComm). Type 2, the proxy, is what
// later releases select themselves.
constexpr const char* kGinType = "NCCL_GIN_TYPE";
constexpr const char* kGinProxy = "2";

// The cluster network's interface: the one of the pod's best default route that is no rail's. NCCL's
// bootstrap traffic must not use a rail. "": there is none.
Result<std::string> SocketInterface(RouteApi& pod, const std::vector<AttachedDevice>& devices) {
  for (const int family : {AF_INET, AF_INET6}) {
    auto routes = RH_TRY(pod.ListRoutes(family, kTableMain));
    std::erase_if(routes,
                  [](const Route& route) { return route.destination.length != 0 || route.link == 0; });
    std::ranges::stable_sort(routes, {}, &Route::metric);
    for (const Route& route : routes) {
      const auto link = RH_TRY(pod.FindLink(route.link));
      if (link && !Contains(devices, link->name, &AttachedDevice::pod_name)) return link->name;
    }
  }
  return std::string();
}

Result<std::optional<std::string>> TopologyOf(const Root& root, TopologyPolicy policy,
                                              const nccl::NcclView& view,
                                              std::vector<nccl::TopologyFileNic> nics) {
  const bool needed =
      policy == TopologyPolicy::kAlways || (policy == TopologyPolicy::kNeeded && view.NeedsTopologyFile());
  if (!needed) return std::nullopt;
  auto text = nccl::TopologyText(root, {std::move(nics), std::nullopt});
  if (text) return *std::move(text);
  Error error = Wrap(text.error(), "NCCL needs a topology file to find the pod's NICs");
  if (error.hint.empty())
    error.hint = "set \"ncclConfig\": {\"topology\": \"never\"} in fabric.json to omit it";
  return Fail(std::move(error));
}

void AddVariables(const std::vector<nccl::Variable>& lines, std::vector<std::string>& env) {
  for (const auto& [name, value] : lines) env.push_back(std::string(name).append("=").append(value));
}

Result<void> AddStacks(const std::set<CommunicationStack>& stacks, const nccl::NcclConfig& config,
                       const nccl::GidTableReader& table_of, NcclConfigContent& content) {
  if (stacks.contains(CommunicationStack::kRccl))
    content.files.front().in_container.emplace_back(nccl::kRcclConfInContainer);
  if (stacks.contains(CommunicationStack::kUcx)) {
    // A variable, since a return inside braces leaks what they have constructed.
    auto conf = RH_TRY(UcxConf(config, table_of));
    content.files.push_back({nccl::kUcxConfName, {nccl::kUcxConfInContainer}, std::move(conf)});
    // UCX reads this folder without the variable only if it is installed below /usr.
    content.env.push_back(std::string("UCX_CONFIG_DIR=") + nccl::kUcxDirectoryInContainer);
  }
  if (stacks.contains(CommunicationStack::kNvshmem)) AddVariables(NvshmemVariables(config), content.env);
  if (stacks.contains(CommunicationStack::kGloo)) AddVariables(GlooVariables(config), content.env);
  if (stacks.contains(CommunicationStack::kOpenMpi)) AddVariables(OpenMpiVariables(config), content.env);
  return {};
}

}  // namespace

Result<NcclConfigContent> BuildNcclConfig(const Root& root, Kernel& kernel, PodNetwork& network,
                                          const AttachPlan& plan, std::vector<AttachedDevice> devices) {
  NcclConfigContent content;
  // A pod can also have NICs that are not for NCCL.
  std::erase_if(devices, [](const auto& device) { return !device.nccl.enabled; });
  Nics nics = RH_TRY(NicsOf(devices));
  if (nics.configs.empty()) return content;
  const nccl::NcclView view = RH_TRY(NcclViewOf(root, std::move(nics.places)));
  const auto table_of = [&](const nccl::NicConfig& nic) { return TableOf(kernel, network.pod_ns, nic); };
  nccl::NcclConfig config;
  config.gids = RH_TRY(SelectGids(nics.configs, table_of));
  config.nics = std::move(nics.configs);
  config.hardware = view.Variables();
  if (!nics.mlx5) config.hardware.emplace_back(kGinType, kGinProxy);
  config.socket_ifname = RH_TRY(SocketInterface(*network.pod, devices));
  config.env = plan.nccl_config_options.Lines();
  auto conf = RH_TRY(NcclConf(config));
  content.files.push_back({nccl::kNcclConfName, {nccl::kNcclConfInContainer}, std::move(conf)});
  RH_TRY(AddStacks(plan.nccl_config_options.stacks, config, table_of, content));
  auto topology = RH_TRY(TopologyOf(root, plan.nccl_config_options.topology, view, std::move(nics.topology)));
  if (topology)
    content.files.push_back({nccl::kTopologyName, {nccl::kNcclTopologyInContainer}, *std::move(topology)});
  return content;
}

Result<void> PlanNcclConfig(const Root& root, NcclConfigMode mode, DevicePlan& plan) {
  AttachedDevice& record = plan.record;
  plan.allocation = RH_TRY(ReadAllocation(root, record.KubeletId()));
  if (!record.slot.empty() && plan.allocation) record.resource = plan.allocation->resource;
  const bool by_record = plan.allocation && plan.allocation->nccl_config == NcclConfigPolicy::kRequired;
  plan.nccl_config_required =
      mode == NcclConfigMode::kRequired || (mode == NcclConfigMode::kAuto && by_record);
  const bool enabled =
      mode == NcclConfigMode::kRequired || (mode == NcclConfigMode::kAuto && (!plan.allocation || by_record));
  record.nccl.enabled = enabled && !record.rdma.device.empty();
  if (plan.nccl_config_required && record.rdma.device.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "device " + record.device + " has no RDMA device, and its NCCL configuration is required",
                "load the NIC's RDMA driver, or set softRoce on the rail, or \"ncclConfig\": \"off\"");
  }
  return {};
}

}  // namespace railhead::attachment
