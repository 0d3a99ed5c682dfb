#include "netns/nl/device_state.h"

#include <linux/bpf.h>
#include <linux/dcbnl.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>

#include <algorithm>
#include <array>
#include <limits>

#include "netns/base/text.h"
#include "netns/nl/device_attributes.h"

namespace railhead {
namespace {

using Source = DeviceSource;
using Form = DeviceForm;
constexpr auto kReported = DeviceFieldKind::kReported;
constexpr auto kAttached = DeviceFieldKind::kAttached;

constexpr std::array kFields = {
    DeviceField{"tcx.ingress", Source::kTcx, nl::kBpfTcxIngress, Form::kList, kAttached},
    DeviceField{"tcx.egress", Source::kTcx, nl::kBpfTcxEgress, Form::kList, kAttached},
    DeviceField{"xdp.generic", Source::kXdp, IFLA_XDP_SKB_PROG_ID, Form::kList, kAttached},
    DeviceField{"xdp.driver", Source::kXdp, IFLA_XDP_DRV_PROG_ID, Form::kList, kAttached},
    DeviceField{"xdp.offload", Source::kXdp, IFLA_XDP_HW_PROG_ID, Form::kList, kAttached},
    DeviceField{"link.flags", Source::kLink, nl::kLinkFlags, Form::kU32},
    DeviceField{"link.group", Source::kLink, IFLA_GROUP, Form::kU32},
    DeviceField{"link.mode", Source::kLink, IFLA_LINKMODE, Form::kU8},
    DeviceField{"link.broadcast", Source::kLink, IFLA_BROADCAST, Form::kBytes},
    DeviceField{"link.proto-down", Source::kLink, IFLA_PROTO_DOWN, Form::kU8},
    DeviceField{"link.gso-max-size", Source::kLink, IFLA_GSO_MAX_SIZE, Form::kU32},
    DeviceField{"link.gso-max-segs", Source::kLink, IFLA_GSO_MAX_SEGS, Form::kU32},
    DeviceField{"link.gro-max-size", Source::kLink, IFLA_GRO_MAX_SIZE, Form::kU32},
    DeviceField{"link.gso-ipv4-max-size", Source::kLink, nl::kGsoIpv4MaxSize, Form::kU32},
    DeviceField{"link.gro-ipv4-max-size", Source::kLink, nl::kGroIpv4MaxSize, Form::kU32},
    DeviceField{"qdisc.root", Source::kQdisc, static_cast<int>(TC_H_ROOT), Form::kList, kAttached},
    DeviceField{"qdisc.ingress", Source::kQdisc, static_cast<int>(TC_H_INGRESS), Form::kList, kAttached},
    DeviceField{"private-flags.flags", Source::kPrivateFlags, ETHTOOL_A_PRIVFLAGS_FLAGS, Form::kBits},
    DeviceField{"features.wanted", Source::kFeatures, ETHTOOL_A_FEATURES_WANTED, Form::kBits},
    DeviceField{"channels.rx", Source::kChannels, ETHTOOL_A_CHANNELS_RX_COUNT, Form::kU32},
    DeviceField{"channels.tx", Source::kChannels, ETHTOOL_A_CHANNELS_TX_COUNT, Form::kU32},
    DeviceField{"channels.other", Source::kChannels, ETHTOOL_A_CHANNELS_OTHER_COUNT, Form::kU32},
    DeviceField{"channels.combined", Source::kChannels, ETHTOOL_A_CHANNELS_COMBINED_COUNT, Form::kU32},
    DeviceField{"rings.rx", Source::kRings, ETHTOOL_A_RINGS_RX, Form::kU32},
    DeviceField{"rings.rx-mini", Source::kRings, ETHTOOL_A_RINGS_RX_MINI, Form::kU32},
    DeviceField{"rings.rx-jumbo", Source::kRings, ETHTOOL_A_RINGS_RX_JUMBO, Form::kU32},
    DeviceField{"rings.tx", Source::kRings, ETHTOOL_A_RINGS_TX, Form::kU32},
    DeviceField{"rings.rx-buf-len", Source::kRings, ETHTOOL_A_RINGS_RX_BUF_LEN, Form::kU32, kReported},
    DeviceField{"rings.tcp-data-split", Source::kRings, ETHTOOL_A_RINGS_TCP_DATA_SPLIT, Form::kU8, kReported},
    DeviceField{"rings.cqe-size", Source::kRings, ETHTOOL_A_RINGS_CQE_SIZE, Form::kU32},
    DeviceField{"rings.tx-push", Source::kRings, ETHTOOL_A_RINGS_TX_PUSH, Form::kU8},
    DeviceField{"rings.rx-push", Source::kRings, nl::kRingsRxPush, Form::kU8},
    DeviceField{"rings.tx-push-buf-len", Source::kRings, nl::kRingsTxPushBufLen, Form::kU32},
    DeviceField{"rings.hds-threshold", Source::kRings, nl::kRingsHdsThreshold, Form::kU32},
    DeviceField{"coalesce.adaptive-rx", Source::kCoalesce, ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, Form::kU8},
    DeviceField{"coalesce.adaptive-tx", Source::kCoalesce, ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX, Form::kU8},
    // What adaptive moderation chooses by itself.
    DeviceField{"coalesce.rx-usecs", Source::kCoalesce, ETHTOOL_A_COALESCE_RX_USECS, Form::kU32, kReported},
    DeviceField{"coalesce.rx-frames", Source::kCoalesce, ETHTOOL_A_COALESCE_RX_MAX_FRAMES, Form::kU32,
                kReported},
    DeviceField{"coalesce.tx-usecs", Source::kCoalesce, ETHTOOL_A_COALESCE_TX_USECS, Form::kU32, kReported},
    DeviceField{"coalesce.tx-frames", Source::kCoalesce, ETHTOOL_A_COALESCE_TX_MAX_FRAMES, Form::kU32,
                kReported},
    DeviceField{"coalesce.rx-usecs-irq", Source::kCoalesce, ETHTOOL_A_COALESCE_RX_USECS_IRQ, Form::kU32},
    DeviceField{"coalesce.rx-frames-irq", Source::kCoalesce, ETHTOOL_A_COALESCE_RX_MAX_FRAMES_IRQ,
                Form::kU32},
    DeviceField{"coalesce.tx-usecs-irq", Source::kCoalesce, ETHTOOL_A_COALESCE_TX_USECS_IRQ, Form::kU32},
    DeviceField{"coalesce.tx-frames-irq", Source::kCoalesce, ETHTOOL_A_COALESCE_TX_MAX_FRAMES_IRQ,
                Form::kU32},
    DeviceField{"coalesce.stats-usecs", Source::kCoalesce, ETHTOOL_A_COALESCE_STATS_BLOCK_USECS, Form::kU32},
    DeviceField{"coalesce.rate-low", Source::kCoalesce, ETHTOOL_A_COALESCE_PKT_RATE_LOW, Form::kU32},
    DeviceField{"coalesce.rx-usecs-low", Source::kCoalesce, ETHTOOL_A_COALESCE_RX_USECS_LOW, Form::kU32},
    DeviceField{"coalesce.rx-frames-low", Source::kCoalesce, ETHTOOL_A_COALESCE_RX_MAX_FRAMES_LOW,
                Form::kU32},
    DeviceField{"coalesce.tx-usecs-low", Source::kCoalesce, ETHTOOL_A_COALESCE_TX_USECS_LOW, Form::kU32},
    DeviceField{"coalesce.tx-frames-low", Source::kCoalesce, ETHTOOL_A_COALESCE_TX_MAX_FRAMES_LOW,
                Form::kU32},
    DeviceField{"coalesce.rate-high", Source::kCoalesce, ETHTOOL_A_COALESCE_PKT_RATE_HIGH, Form::kU32},
    DeviceField{"coalesce.rx-usecs-high", Source::kCoalesce, ETHTOOL_A_COALESCE_RX_USECS_HIGH, Form::kU32},
    DeviceField{"coalesce.rx-frames-high", Source::kCoalesce, ETHTOOL_A_COALESCE_RX_MAX_FRAMES_HIGH,
                Form::kU32},
    DeviceField{"coalesce.tx-usecs-high", Source::kCoalesce, ETHTOOL_A_COALESCE_TX_USECS_HIGH, Form::kU32},
    DeviceField{"coalesce.tx-frames-high", Source::kCoalesce, ETHTOOL_A_COALESCE_TX_MAX_FRAMES_HIGH,
                Form::kU32},
    DeviceField{"coalesce.sample-interval", Source::kCoalesce, ETHTOOL_A_COALESCE_RATE_SAMPLE_INTERVAL,
                Form::kU32},
    DeviceField{"coalesce.cqe-mode-tx", Source::kCoalesce, ETHTOOL_A_COALESCE_USE_CQE_MODE_TX, Form::kU8},
    DeviceField{"coalesce.cqe-mode-rx", Source::kCoalesce, ETHTOOL_A_COALESCE_USE_CQE_MODE_RX, Form::kU8},
    DeviceField{"coalesce.tx-aggr-bytes", Source::kCoalesce, nl::kCoalesceTxAggrMaxBytes, Form::kU32},
    DeviceField{"coalesce.tx-aggr-frames", Source::kCoalesce, nl::kCoalesceTxAggrMaxFrames, Form::kU32},
    DeviceField{"coalesce.tx-aggr-usecs", Source::kCoalesce, nl::kCoalesceTxAggrTimeUsecs, Form::kU32},
    DeviceField{"coalesce.rx-profile", Source::kCoalesce, nl::kCoalesceRxProfile, Form::kBytes},
    DeviceField{"coalesce.tx-profile", Source::kCoalesce, nl::kCoalesceTxProfile, Form::kBytes},
    DeviceField{"coalesce.rx-cqe-frames", Source::kCoalesce, nl::kCoalesceRxCqeFrames, Form::kU32},
    DeviceField{"coalesce.rx-cqe-nsecs", Source::kCoalesce, nl::kCoalesceRxCqeNsecs, Form::kU32},
    DeviceField{"pause.autoneg", Source::kPause, ETHTOOL_A_PAUSE_AUTONEG, Form::kU8, kReported},
    DeviceField{"pause.rx", Source::kPause, ETHTOOL_A_PAUSE_RX, Form::kU8, kReported},
    DeviceField{"pause.tx", Source::kPause, ETHTOOL_A_PAUSE_TX, Form::kU8, kReported},
    DeviceField{"fec.modes", Source::kFec, ETHTOOL_A_FEC_MODES, Form::kBits, kReported},
    DeviceField{"fec.auto", Source::kFec, ETHTOOL_A_FEC_AUTO, Form::kU8, kReported},
    DeviceField{"eee.modes", Source::kEee, ETHTOOL_A_EEE_MODES_OURS, Form::kBits, kReported},
    DeviceField{"eee.enabled", Source::kEee, ETHTOOL_A_EEE_ENABLED, Form::kU8, kReported},
    DeviceField{"eee.tx-lpi", Source::kEee, ETHTOOL_A_EEE_TX_LPI_ENABLED, Form::kU8, kReported},
    DeviceField{"eee.tx-lpi-timer", Source::kEee, ETHTOOL_A_EEE_TX_LPI_TIMER, Form::kU32, kReported},
    DeviceField{"wake-on-lan.modes", Source::kWakeOnLan, ETHTOOL_A_WOL_MODES, Form::kBits},
    DeviceField{"wake-on-lan.password", Source::kWakeOnLan, ETHTOOL_A_WOL_SOPASS, Form::kBytes},
    DeviceField{"debug.messages", Source::kDebug, ETHTOOL_A_DEBUG_MSGMASK, Form::kBits},
    DeviceField{"dcb.ets", Source::kDcb, DCB_ATTR_IEEE_ETS, Form::kBytes},
    DeviceField{"dcb.pfc", Source::kDcb, DCB_ATTR_IEEE_PFC, Form::kBytes},
    DeviceField{"dcb.max-rate", Source::kDcb, DCB_ATTR_IEEE_MAXRATE, Form::kBytes},
    DeviceField{"dcb.applications", Source::kDcb, DCB_ATTR_IEEE_APP_TABLE, Form::kList, kAttached},
    DeviceField{"rss.table", Source::kRss, nl::kRssTable, Form::kBytes},
    DeviceField{"rss.key", Source::kRss, nl::kRssKey, Form::kBytes},
    DeviceField{"rss.function", Source::kRss, nl::kRssFunction, Form::kU8},
    DeviceField{"rss.transformation", Source::kRss, nl::kRssTransformation, Form::kU8},
    DeviceField{"rss.tcp4", Source::kRss, TCP_V4_FLOW, Form::kU64},
    DeviceField{"rss.udp4", Source::kRss, UDP_V4_FLOW, Form::kU64},
    DeviceField{"rss.sctp4", Source::kRss, SCTP_V4_FLOW, Form::kU64},
    DeviceField{"rss.ah4", Source::kRss, AH_V4_FLOW, Form::kU64},
    DeviceField{"rss.esp4", Source::kRss, ESP_V4_FLOW, Form::kU64},
    DeviceField{"rss.ip4", Source::kRss, IPV4_FLOW, Form::kU64},
    DeviceField{"rss.tcp6", Source::kRss, TCP_V6_FLOW, Form::kU64},
    DeviceField{"rss.udp6", Source::kRss, UDP_V6_FLOW, Form::kU64},
    DeviceField{"rss.sctp6", Source::kRss, SCTP_V6_FLOW, Form::kU64},
    DeviceField{"rss.ah6", Source::kRss, AH_V6_FLOW, Form::kU64},
    DeviceField{"rss.esp6", Source::kRss, ESP_V6_FLOW, Form::kU64},
    DeviceField{"rss.ip6", Source::kRss, IPV6_FLOW, Form::kU64},
    DeviceField{"rules.list", Source::kRules, 0, Form::kList, kAttached},
    DeviceField{"tunables.rx-copybreak", Source::kTunables, ETHTOOL_RX_COPYBREAK, Form::kU32},
    DeviceField{"tunables.tx-copybreak", Source::kTunables, ETHTOOL_TX_COPYBREAK, Form::kU32},
    DeviceField{"tunables.pfc-prevention", Source::kTunables, ETHTOOL_PFC_PREVENTION_TOUT, Form::kU16},
    DeviceField{"tunables.tx-buf-size", Source::kTunables, ETHTOOL_TX_COPYBREAK_BUF_SIZE, Form::kU32},
    DeviceField{"timestamps.config", Source::kTimestamps, 0, Form::kBytes},
};

// Positions in the table, by name: each journal entry asks for all of them.
constexpr auto kByName = [] {
  std::array<std::size_t, kFields.size()> positions{};
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = i;
  std::ranges::sort(positions,
                    [](std::size_t a, std::size_t b) { return kFields[a].name < kFields[b].name; });
  return positions;
}();

bool IsHex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsNumber(std::string_view text, std::uint64_t most) {
  constexpr std::size_t kMostDigits = 20;
  if (text.empty() || text.size() > kMostDigits || (text[0] == '0' && text.size() > 1)) return false;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return false;
    value = value * 10 + digit;
  }
  return value <= most;
}

// Sorted and each once, so that equal lists are equal texts.
bool IsList(std::string_view text) {
  if (text.empty()) return true;
  const auto elements = Split(text, ',');
  return std::ranges::all_of(elements,
                             [](const std::string& element) {
                               return !element.empty() && std::ranges::all_of(element, [](char c) {
                                 return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '/' ||
                                        c == '_';
                               });
                             }) &&
         std::ranges::adjacent_find(elements, std::greater_equal<>()) == elements.end();
}

}  // namespace

std::span<const DeviceField> DeviceFields() {
  return kFields;
}

const DeviceField* FindDeviceField(std::string_view name) {
  const auto found = std::ranges::lower_bound(
      kByName, name, {}, [](std::size_t at) -> std::string_view { return kFields[at].name; });
  return found == kByName.end() || kFields[*found].name != name ? nullptr : &kFields[*found];
}

bool IsDeviceValue(const DeviceField& field, std::string_view value) {
  constexpr std::size_t kWordDigits = 8;
  switch (field.form) {
    case Form::kU8:
      return IsNumber(value, std::numeric_limits<std::uint8_t>::max());
    case Form::kU16:
      return IsNumber(value, std::numeric_limits<std::uint16_t>::max());
    case Form::kU32:
      return IsNumber(value, std::numeric_limits<std::uint32_t>::max());
    case Form::kU64:
      return IsNumber(value, std::numeric_limits<std::uint64_t>::max());
    case Form::kBytes:
      return value.size() % 2 == 0 && IsHex(value);
    case Form::kBits:
      return value.size() % kWordDigits == 0 && IsHex(value);
    case Form::kList:
      return IsList(value);
  }
  return false;
}

}  // namespace railhead
