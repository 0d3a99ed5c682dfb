#include "cni/nccl/ucx_conf.h"

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

}  // namespace railhead::nccl
