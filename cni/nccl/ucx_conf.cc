#include "cni/nccl/ucx_conf.h"

#include <algorithm>

#include "netns/base/text.h"

namespace railhead {
namespace {

// Lower is taken first.
int RankOf(const IpAddress& address) {
  if (!address.IsV6()) return 0;
  return address.IsLinkLocal() ? 2 : 1;
}

Result<void> CheckSearch(const HandoffNic& nic, const GidTableReader& table_of) {
  const auto table = RH_TRY(table_of(nic));
  if (UcxPicks(table) == nic.gid_index) return {};
  return Fail(ErrorCode::kConflict,
              "the pod's NICs have different GID indices, and UCX would not take that of " +
                  nic.address.ToString() + " on " + nic.rdma_device,
              "look for further addresses on it, or leave \"ucx\" out of handoff.stacks. GID table:\n" +
                  Describe(table));
}

}  // namespace

std::optional<int> UcxPicks(const std::vector<GidEntry>& table) {
  const GidEntry* best = nullptr;
  for (const GidEntry& entry : table) {
    if (entry.type != GidType::kRoceV2) continue;
    if (best == nullptr || RankOf(AddressOfGid(entry.gid)) < RankOf(AddressOfGid(best->gid))) best = &entry;
  }
  return best == nullptr ? std::nullopt : std::optional<int>(best->index);
}

Result<std::string> UcxConf(const Handoff& handoff, const GidTableReader& table_of) {
  std::vector<std::string> devices;
  devices.reserve(handoff.nics.size() + 1);
  for (const HandoffNic& nic : handoff.nics) devices.push_back(nic.rdma_device + ":1");
  if (!handoff.socket_ifname.empty()) devices.push_back(handoff.socket_ifname);
  std::string text = "UCX_NET_DEVICES=" + Join(devices, ",") + "\n";
  const auto add = [&](const char* name, int value) {
    text.append(name).append("=").append(std::to_string(value)).append("\n");
  };
  if (const int* index = std::get_if<int>(&handoff.gids)) {
    add("UCX_IB_GID_INDEX", *index);
  } else {
    for (const HandoffNic& nic : handoff.nics) RH_TRY(CheckSearch(nic, table_of));
  }
  if (const auto tc = SharedValue(handoff.nics, &HandoffNic::traffic_class)) add("UCX_IB_TRAFFIC_CLASS", *tc);
  if (const auto sl = SharedValue(handoff.nics, &HandoffNic::service_level)) add("UCX_IB_SL", *sl);
  return text;
}

}  // namespace railhead
