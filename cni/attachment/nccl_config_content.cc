#include "cni/attachment/nccl_config_content.h"

#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "cni/attachment/rdma.h"
#include "cni/nccl/nccl_conf.h"
#include "cni/nccl/nccl_path.h"
#include "cni/nccl/stack_variables.h"
#include "cni/nccl/topology_file.h"
#include "cni/nccl/ucx_conf.h"
#include "netns/base/text.h"

namespace railhead::attachment {
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

}  // namespace railhead::attachment
