#include "netns/nl/counter_messages.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "netns/nl/attributes.h"
#include "netns/nl/link_messages.h"

namespace railhead::nl {
namespace {

Traffic OfLink(const rtnl_link_stats64& stats) {
  Traffic traffic;
  traffic.rx_bytes = stats.rx_bytes;
  traffic.tx_bytes = stats.tx_bytes;
  traffic.rx_packets = stats.rx_packets;
  traffic.tx_packets = stats.tx_packets;
  traffic.rx_multicast = stats.multicast;
  traffic.rx_dropped = stats.rx_dropped + stats.rx_missed_errors;
  traffic.tx_dropped = stats.tx_dropped;
  traffic.rx_errors = stats.rx_errors;
  traffic.tx_errors = stats.tx_errors;
  return traffic;
}

// Older kernels send fewer fields (dropped: 4.17), newer ones may send more.
rtnl_link_stats64 PaddedStats(BytesView payload) {
  rtnl_link_stats64 stats{};
  std::memcpy(&stats, payload.data(), std::min(payload.size(), sizeof(stats)));
  return stats;
}

void StoreVfStat(Traffic& traffic, int type, BytesView payload) {
  const auto value = ReadStruct<std::uint64_t>(payload);
  if (!value) return;
  switch (type) {
    case IFLA_VF_STATS_RX_BYTES:
      traffic.rx_bytes = *value;
      break;
    case IFLA_VF_STATS_TX_BYTES:
      traffic.tx_bytes = *value;
      break;
    case IFLA_VF_STATS_RX_PACKETS:
      traffic.rx_packets = *value;
      break;
    case IFLA_VF_STATS_TX_PACKETS:
      traffic.tx_packets = *value;
      break;
    case IFLA_VF_STATS_MULTICAST:
      traffic.rx_multicast = *value;
      break;
    case IFLA_VF_STATS_BROADCAST:
      traffic.rx_broadcast = *value;
      break;
    case IFLA_VF_STATS_RX_DROPPED:
      traffic.rx_dropped = *value;
      break;
    case IFLA_VF_STATS_TX_DROPPED:
      traffic.tx_dropped = *value;
      break;
    default:
      break;
  }
}

// Each setting of a VF names the VF; the MAC is always among them.
std::optional<VfTraffic> ParseVf(BytesView attributes) {
  std::optional<int> vf;
  std::optional<Traffic> traffic;
  ForEachAttribute(attributes, [&](int type, BytesView payload) {
    if (type == IFLA_VF_MAC) {
      if (const auto mac = ReadStruct<ifla_vf_mac>(payload)) vf = static_cast<int>(mac->vf);
    }
    if (type == IFLA_VF_STATS) {
      traffic.emplace();
      ForEachAttribute(payload, [&](int stat, BytesView value) { StoreVfStat(*traffic, stat, value); });
    }
  });
  if (!vf || !traffic) return std::nullopt;
  return VfTraffic{*vf, *traffic};
}

std::vector<VfTraffic> ParseVfs(BytesView list) {
  std::vector<VfTraffic> vfs;
  ForEachAttribute(list, [&](int type, BytesView payload) {
    if (type != IFLA_VF_INFO) return;
    if (const auto vf = ParseVf(payload)) vfs.push_back(*vf);
  });
  return vfs;
}

}  // namespace

Message GetTrafficMessage(const std::string& netdev, bool with_vfs) {
  Message message(RTM_GETLINK, 0);
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  message.Header(header);
  message.PutString(IFLA_IFNAME, netdev);
  if (with_vfs) message.PutU32(IFLA_EXT_MASK, RTEXT_FILTER_VF);
  return message;
}

std::optional<PfTraffic> ParseTraffic(const Received& received) {
  BytesView attributes = received.payload;
  if (received.type != RTM_NEWLINK) return std::nullopt;
  const auto header = TakeHeader<ifinfomsg>(attributes);
  if (!header) return std::nullopt;
  PfTraffic pf;
  pf.carrier = (header->ifi_flags & kLowerUp) != 0;
  bool counted = false;
  ForEachAttribute(attributes, [&](int type, BytesView payload) {
    if (type == IFLA_STATS64) {
      pf.traffic = OfLink(PaddedStats(payload));
      counted = true;
    }
    if (type == IFLA_CARRIER_CHANGES) Store(pf.carrier_changes, ReadStruct<std::uint32_t>(payload));
    if (type == IFLA_VFINFO_LIST) pf.vfs = ParseVfs(payload);
  });
  if (!counted) return std::nullopt;
  return pf;
}

Message GetRdmaCountersMessage(std::uint32_t device_index, std::uint32_t port) {
  Message message(static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET)), 0);
  message.PutU32(RDMA_NLDEV_ATTR_DEV_INDEX, device_index);
  message.PutU32(RDMA_NLDEV_ATTR_PORT_INDEX, port);
  return message;
}

NamedCounters ParseRdmaCounters(const Received& received) {
  NamedCounters counters;
  const auto one = [&](int type, BytesView entry) {
    if (type != RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY) return;
    std::string name;
    std::optional<std::uint64_t> value;
    ForEachAttribute(entry, [&](int field, BytesView payload) {
      if (field == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME) name = ReadString(payload);
      if (field == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE) value = ReadStruct<std::uint64_t>(payload);
    });
    if (!name.empty() && value) counters.emplace_back(std::move(name), *value);
  };
  ForEachAttribute(received.payload, [&](int type, BytesView payload) {
    if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTERS) ForEachAttribute(payload, one);
  });
  return counters;
}

}  // namespace railhead::nl
