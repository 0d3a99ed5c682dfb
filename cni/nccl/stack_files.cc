#include "cni/nccl/stack_files.h"

#include <algorithm>
#include <string>

#include "netns/base/text.h"

namespace railhead::nccl {
namespace {

// Lower is taken first.
int RankSince121(const IpAddress& address) {
  if (!address.IsV6()) return 0;
  return address.IsLinkLocal() ? 2 : 1;
}
int RankBefore(const IpAddress& address) {
  return address.IsV6() ? 1 : 0;
}

template <typename Rank>
std::optional<int> FirstOf(const std::vector<GidEntry>& table, Rank rank) {
  const GidEntry* best = nullptr;
  for (const GidEntry& entry : table) {
    if (entry.type != GidType::kRoceV2) continue;
    if (best == nullptr || rank(AddressOfGid(entry.gid)) < rank(AddressOfGid(best->gid))) best = &entry;
  }
  return best == nullptr ? std::nullopt : std::optional<int>(best->index);
}

Result<void> CheckSearch(const NicConfig& nic, const GidTableReader& table_of) {
  const auto table = RH_TRY(table_of(nic));
  if (UcxPicks(table) == nic.gid_index) return {};
  return Fail(
      ErrorCode::kConflict,
      "the pod's NICs have different GID indices, and not every UCX since 1.15 would take that of " +
          nic.address.ToString() + " on " + nic.rdma_device,
      "give the NICs IPv4 addresses (UCX before 1.21 takes a link-local one before another of IPv6), remove "
      "further addresses of the NIC, or \"ucx\" from ncclConfig.stacks. GID table:\n" +
          Describe(table));
}

}  // namespace

std::optional<int> UcxPicks(const std::vector<GidEntry>& table) {
  const auto picked = FirstOf(table, RankSince121);
  return picked == FirstOf(table, RankBefore) ? picked : std::nullopt;
}

Result<std::string> UcxConf(const NcclConfig& config, const GidTableReader& table_of) {
  std::vector<std::string> devices;
  devices.reserve(config.nics.size() + 1);
  for (const NicConfig& nic : config.nics) devices.push_back(nic.rdma_device + ":1");
  if (!config.socket_ifname.empty()) devices.push_back(config.socket_ifname);
  std::string text = "UCX_NET_DEVICES=" + Join(devices, ",") + "\n";
  const auto add = [&](const char* name, int value) {
    text.append(name).append("=").append(std::to_string(value)).append("\n");
  };
  if (const int* index = std::get_if<int>(&config.gids)) {
    add("UCX_IB_GID_INDEX", *index);
  } else {
    for (const NicConfig& nic : config.nics) RH_TRY(CheckSearch(nic, table_of));
  }
  if (const auto tc = SharedValue(config.nics, &NicConfig::traffic_class)) add("UCX_IB_TRAFFIC_CLASS", *tc);
  if (const auto sl = SharedValue(config.nics, &NicConfig::service_level)) add("UCX_IB_SL", *sl);
  return text;
}

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
