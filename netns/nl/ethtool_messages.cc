#include "netns/nl/ethtool_messages.h"

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>

#include <algorithm>
#include <array>

#include "netns/nl/attributes.h"
#include "netns/nl/device_attributes.h"

namespace railhead::nl {
namespace {

// The header is the first attribute of each of them.
constexpr int kEthtoolHeader = 1;
static_assert(kEthtoolHeader == ETHTOOL_A_RINGS_HEADER && kEthtoolHeader == ETHTOOL_A_FEATURES_HEADER);

struct Commands {
  std::uint8_t get;
  std::uint8_t set;
};

constexpr std::array kEthtoolSources = {
    DeviceSource::kPrivateFlags, DeviceSource::kFeatures, DeviceSource::kChannels, DeviceSource::kRings,
    DeviceSource::kCoalesce,     DeviceSource::kPause,    DeviceSource::kFec,      DeviceSource::kEee,
    DeviceSource::kWakeOnLan,    DeviceSource::kDebug};

Commands CommandsOf(DeviceSource source) {
  switch (source) {
    case DeviceSource::kPrivateFlags:
      return {ETHTOOL_MSG_PRIVFLAGS_GET, ETHTOOL_MSG_PRIVFLAGS_SET};
    case DeviceSource::kFeatures:
      return {ETHTOOL_MSG_FEATURES_GET, ETHTOOL_MSG_FEATURES_SET};
    case DeviceSource::kChannels:
      return {ETHTOOL_MSG_CHANNELS_GET, ETHTOOL_MSG_CHANNELS_SET};
    case DeviceSource::kRings:
      return {ETHTOOL_MSG_RINGS_GET, ETHTOOL_MSG_RINGS_SET};
    case DeviceSource::kCoalesce:
      return {ETHTOOL_MSG_COALESCE_GET, ETHTOOL_MSG_COALESCE_SET};
    case DeviceSource::kPause:
      return {ETHTOOL_MSG_PAUSE_GET, ETHTOOL_MSG_PAUSE_SET};
    case DeviceSource::kFec:
      return {ETHTOOL_MSG_FEC_GET, ETHTOOL_MSG_FEC_SET};
    case DeviceSource::kEee:
      return {ETHTOOL_MSG_EEE_GET, ETHTOOL_MSG_EEE_SET};
    case DeviceSource::kWakeOnLan:
      return {ETHTOOL_MSG_WOL_GET, ETHTOOL_MSG_WOL_SET};
    case DeviceSource::kDebug:
      return {ETHTOOL_MSG_DEBUG_GET, ETHTOOL_MSG_DEBUG_SET};
    default:
      return {ETHTOOL_MSG_USER_NONE, ETHTOOL_MSG_USER_NONE};
  }
}

Message BeginEthtool(std::uint16_t family, std::uint8_t command, int index, std::uint32_t flags) {
  Message message(family, 0);
  message.Header(genlmsghdr{command, ETHTOOL_GENL_VERSION, 0});
  {
    const Message::Nest header(message, kEthtoolHeader);
    message.PutU32(ETHTOOL_A_HEADER_DEV_INDEX, static_cast<std::uint32_t>(index));
    message.PutU32(ETHTOOL_A_HEADER_FLAGS, flags);
  }
  return message;
}

}  // namespace

std::span<const DeviceSource> EthtoolSources() {
  return kEthtoolSources;
}

Message GetEthtoolFamilyMessage() {
  Message message(GENL_ID_CTRL, 0);
  message.Header(genlmsghdr{CTRL_CMD_GETFAMILY, 1, 0});
  message.PutString(CTRL_ATTR_FAMILY_NAME, ETHTOOL_GENL_NAME);
  return message;
}

std::optional<std::uint16_t> ParseEthtoolFamily(const Received& received) {
  BytesView rest = received.payload;
  if (!TakeHeader<genlmsghdr>(rest)) return std::nullopt;
  std::optional<std::uint16_t> family;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == CTRL_ATTR_FAMILY_ID) family = ReadStruct<std::uint16_t>(payload);
  });
  return family;
}

Message GetEthtoolMessage(std::uint16_t family, DeviceSource source, int index) {
  return BeginEthtool(family, CommandsOf(source).get, index, ETHTOOL_FLAG_COMPACT_BITSETS);
}

void ParseEthtool(const Received& received, DeviceSource source, DeviceState& state) {
  BytesView rest = received.payload;
  if (!TakeHeader<genlmsghdr>(rest)) return;
  const auto fields = DeviceFields();
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    const auto field = std::ranges::find_if(
        fields, [&](const DeviceField& one) { return one.source == source && one.id == type; });
    if (field != fields.end()) StoreField(state, *field, payload);
  });
}

std::string ParseChangeableFeatures(const Received& received) {
  std::string changeable;
  BytesView rest = received.payload;
  if (!TakeHeader<genlmsghdr>(rest)) return changeable;
  const DeviceField& wanted = *FindDeviceField("features.wanted");
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == ETHTOOL_A_FEATURES_HW) changeable = FieldValue(wanted, payload).value_or("");
  });
  return changeable;
}

Message SetEthtoolMessage(std::uint16_t family, DeviceSource source, int index, const DeviceState& values,
                          std::string_view mask) {
  // The answer to a change of features would come before the acknowledgement, and has nothing for us.
  Message message = BeginEthtool(family, CommandsOf(source).set, index, ETHTOOL_FLAG_OMIT_REPLY);
  for (const DeviceField& field : DeviceFields()) {
    const std::string* value = field.source == source ? values.Find(field.name) : nullptr;
    if (value != nullptr) PutField(message, field, *value, mask);
  }
  return message;
}

}  // namespace railhead::nl
