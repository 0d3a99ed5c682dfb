#include "cni/nccl/stack_variables.h"

#include <algorithm>
#include <string>

namespace railhead {
namespace {

// NVSHMEM skips a device whose name does not have the prefix, mlx5 by default; udev can have renamed
// the devices ("rocep1s0f0v1").
std::string PrefixOf(const std::vector<HandoffNic>& nics) {
  std::string prefix = nics.front().rdma_device;
  for (const HandoffNic& nic : nics) {
    const auto end =
        std::mismatch(prefix.begin(), prefix.end(), nic.rdma_device.begin(), nic.rdma_device.end());
    prefix.erase(end.first, prefix.end());
  }
  return prefix;
}

void AddUcxGids(const GidSelection& gids, std::vector<HandoffLine>& lines) {
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

std::vector<HandoffLine> NvshmemVariables(const Handoff& handoff) {
  std::vector<HandoffLine> lines;
  if (handoff.nics.empty()) return lines;
  const std::string prefix = PrefixOf(handoff.nics);
  if (!prefix.empty() && !prefix.starts_with("mlx5")) lines.emplace_back("NVSHMEM_HCA_PREFIX", prefix);
  AddUcxGids(handoff.gids, lines);
  if (const auto tc = SharedValue(handoff.nics, &HandoffNic::traffic_class))
    lines.emplace_back("NVSHMEM_IB_TRAFFIC_CLASS", std::to_string(*tc));
  if (const auto sl = SharedValue(handoff.nics, &HandoffNic::service_level))
    lines.emplace_back("NVSHMEM_IB_SL", std::to_string(*sl));
  if (!handoff.socket_ifname.empty())
    lines.emplace_back("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "=" + handoff.socket_ifname);
  return lines;
}

std::vector<HandoffLine> GlooVariables(const Handoff& handoff) {
  if (handoff.socket_ifname.empty()) return {};
  return {{"GLOO_SOCKET_IFNAME", handoff.socket_ifname}, {"TP_SOCKET_IFNAME", handoff.socket_ifname}};
}

std::vector<HandoffLine> OpenMpiVariables(const Handoff& handoff) {
  if (handoff.socket_ifname.empty()) return {};
  return {{"OMPI_MCA_btl_tcp_if_include", handoff.socket_ifname},
          {"OMPI_MCA_oob_tcp_if_include", handoff.socket_ifname},
          {"PRTE_MCA_prte_if_include", handoff.socket_ifname}};
}

}  // namespace railhead
