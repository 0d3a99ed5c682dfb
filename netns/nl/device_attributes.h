// Fields of network devices (device_state.h) as attributes of netlink messages, both ways. Internal to
// netns/nl. Also the numbers that Debian 12's headers do not have yet: a kernel without them omits the
// attribute, or refuses it.
// Source: include/uapi/linux/{if_link,ethtool_netlink_generated,bpf}.h, net/ethtool/bitset.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/nl/attributes.h"
#include "netns/nl/device_state.h"
#include "netns/nl/message.h"

namespace railhead::nl {

inline constexpr int kGsoIpv4MaxSize = 63;  // IFLA_GSO_IPV4_MAX_SIZE, Linux 6.3
inline constexpr int kGroIpv4MaxSize = 64;  // IFLA_GRO_IPV4_MAX_SIZE
inline constexpr int kRingsRxPush = 14;     // ETHTOOL_A_RINGS_RX_PUSH, Linux 6.3
inline constexpr int kRingsTxPushBufLen = 15;
inline constexpr int kRingsHdsThreshold = 17;
inline constexpr int kCoalesceTxAggrMaxBytes = 26;  // ETHTOOL_A_COALESCE_TX_AGGR_MAX_BYTES, Linux 6.3
inline constexpr int kCoalesceTxAggrMaxFrames = 27;
inline constexpr int kCoalesceTxAggrTimeUsecs = 28;
inline constexpr int kCoalesceRxProfile = 29;  // Linux 6.11
inline constexpr int kCoalesceTxProfile = 30;
inline constexpr int kCoalesceRxCqeFrames = 31;  // Linux 7.0
inline constexpr int kCoalesceRxCqeNsecs = 32;
inline constexpr int kBpfTcxIngress = 46;  // BPF_TCX_INGRESS, Linux 6.6
inline constexpr int kBpfTcxEgress = 47;

// Fields without an attribute of their own: in the header of a link's message, in an ioctl's structure.
inline constexpr int kLinkFlags = 0;
inline constexpr int kRssTable = -1;
inline constexpr int kRssKey = -2;
inline constexpr int kRssFunction = -3;
inline constexpr int kRssTransformation = -4;

std::string ToHex(BytesView bytes);
// nullopt: not an even number of hexadecimal digits.
std::optional<std::vector<std::uint8_t>> FromHex(std::string_view text);
// Elements as the value of a list: sorted, each once.
std::string ListValue(std::vector<std::string> elements);
std::vector<std::string> ElementsOf(std::string_view list);

void SetValue(DeviceState& state, std::string_view name, std::string value);

// The value of the field in `payload`; nullopt: `payload` does not have the field's form.
std::optional<std::string> FieldValue(const DeviceField& field, BytesView payload);
// Stores the value if `payload` holds one.
void StoreField(DeviceState& state, const DeviceField& field, BytesView payload);
// A number; 0 for other text, which IsDeviceValue() refuses.
std::uint64_t NumberOf(std::string_view value);

// Puts the attribute of that value. `mask`: the bits that may be changed, as a value of the same form;
// without it a bit set is replaced as a whole. An invalid value of the field puts nothing.
void PutField(Message& message, const DeviceField& field, std::string_view value, std::string_view mask = {});

}  // namespace railhead::nl
