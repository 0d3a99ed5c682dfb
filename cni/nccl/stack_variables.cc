#include "cni/nccl/stack_variables.h"

#include <algorithm>
#include <string>

#include "cni/nccl/gid_selection.h"

namespace railhead::nccl {
namespace {

// NVSHMEM skips a device whose name does not have the prefix, mlx5 by default; udev can have renamed
// some or all devices ("rocep1s0f0v1"). An empty one takes all.
std::string PrefixOf(const std::vector<NicConfig>& nics) {
  std::string prefix = nics.front().rdma_device;
  for (const NicConfig& nic : nics) {
    const auto end =
        std::mismatch(prefix.begin(), prefix.end(), nic.rdma_device.begin(), nic.rdma_device.end());
    prefix.erase(end.first, prefix.end());
  }
  return prefix;
}

void AddUcxGids(const GidSelection& gids, std::vector<Variable>& lines) {
  if (const int* index = std::get_if<int>(&gids)) {
    lines.emplace_back("NVSHMEM_IB_GID_INDEX", std::to_string(*index));
    return;
  }
  const auto& search = std::get<GidSearch>(gids);
  lines.emplace_back("NVSHMEM_IB_GID_INDEX", "-1");
  lines.emplace_back("NVSHMEM_IB_ADDR_FAMILY", FamilyName(search));
  lines.emplace_back("NVSHMEM_IB_ADDR_RANGE", search.range.ToString());
  lines.emplace_back("NVSHMEM_IB_ROCE_VERSION_NUM", "2");
}

}  // namespace

std::vector<Variable> NvshmemVariables(const NcclConfig& config) {
  std::vector<Variable> lines;
  if (config.nics.empty()) return lines;
  const std::string prefix = PrefixOf(config.nics);
  if (!prefix.starts_with("mlx5")) lines.emplace_back("NVSHMEM_HCA_PREFIX", prefix);
  AddUcxGids(config.gids, lines);
  if (const auto tc = SharedValue(config.nics, &NicConfig::traffic_class))
    lines.emplace_back("NVSHMEM_IB_TRAFFIC_CLASS", std::to_string(*tc));
  if (const auto sl = SharedValue(config.nics, &NicConfig::service_level))
    lines.emplace_back("NVSHMEM_IB_SL", std::to_string(*sl));
  if (!config.socket_ifname.empty())
    lines.emplace_back("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "=" + config.socket_ifname);
  return lines;
}

std::vector<Variable> GlooVariables(const NcclConfig& config) {
  if (config.socket_ifname.empty()) return {};
  return {{"GLOO_SOCKET_IFNAME", config.socket_ifname}, {"TP_SOCKET_IFNAME", config.socket_ifname}};
}

std::vector<Variable> OpenMpiVariables(const NcclConfig& config) {
  if (config.socket_ifname.empty()) return {};
  return {{"OMPI_MCA_btl_tcp_if_include", config.socket_ifname},
          {"OMPI_MCA_oob_tcp_if_include", config.socket_ifname},
          {"PRTE_MCA_prte_if_include", config.socket_ifname}};
}

}  // namespace railhead::nccl
