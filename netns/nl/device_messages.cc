#include "netns/nl/device_messages.h"

#include <linux/dcbnl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "netns/base/text.h"
#include "netns/nl/attributes.h"
#include "netns/nl/device_attributes.h"

namespace railhead::nl {
namespace {

// The flags of a device that a user can change (__dev_change_flags), except those that RouteApi sets. Without
// ARP or multicast the next pod would reach nobody.
constexpr unsigned kChangeableFlags =
    IFF_DEBUG | IFF_NOTRAILERS | IFF_NOARP | IFF_MULTICAST | IFF_PORTSEL | IFF_AUTOMEDIA | IFF_DYNAMIC;

constexpr std::size_t kPfcSettings = 6;  // of ieee_pfc; counters follow

Message SettingsMessage(std::uint16_t type, int index, unsigned flags = 0, unsigned change = 0) {
  Message message(type, 0);
  ifinfomsg header{};
  header.ifi_index = index;
  header.ifi_flags = flags;
  header.ifi_change = change;
  message.Header(header);
  return message;
}

const DeviceField* FieldOf(DeviceSource source, int id) {
  const auto fields = DeviceFields();
  const auto found = std::ranges::find_if(
      fields, [&](const DeviceField& field) { return field.source == source && field.id == id; });
  return found == fields.end() ? nullptr : &*found;
}

// Each mode that has a program names it in an attribute of its own (rtnl_xdp_report_one).
void ParseXdp(BytesView attributes, DeviceState& state) {
  for (const DeviceField& field : DeviceFields()) {
    if (field.source == DeviceSource::kXdp) SetValue(state, field.name, "");
  }
  ForEachAttribute(attributes, [&](int type, BytesView payload) {
    const DeviceField* field = FieldOf(DeviceSource::kXdp, type);
    const auto program = ReadStruct<std::uint32_t>(payload).value_or(0);
    if (field != nullptr && program != 0) SetValue(state, field->name, std::to_string(program));
  });
}

unsigned XdpModeOf(const DeviceField& field) {
  if (field.id == IFLA_XDP_SKB_PROG_ID) return XDP_FLAGS_SKB_MODE;
  return field.id == IFLA_XDP_HW_PROG_ID ? XDP_FLAGS_HW_MODE : XDP_FLAGS_DRV_MODE;
}

Message QdiscMessage(std::uint16_t type, std::uint16_t netlink_flags, int index, const DeviceField& field,
                     std::uint32_t handle) {
  Message message(type, netlink_flags);
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = index;
  header.tcm_parent = static_cast<std::uint32_t>(field.id);
  header.tcm_handle = handle;
  message.Header(header);
  return message;
}

Message DcbMessage(std::uint8_t command, const std::string& netdev) {
  Message message(RTM_SETDCB, 0);
  dcbmsg header{};
  header.dcb_family = AF_UNSPEC;
  header.cmd = command;
  message.Header(header);
  message.PutString(DCB_ATTR_IFNAME, netdev);
  return message;
}

// "SELECTOR/PROTOCOL/PRIORITY"
std::string ApplicationText(const dcb_app& app) {
  return std::to_string(app.selector) + "/" + std::to_string(app.protocol) + "/" +
         std::to_string(app.priority);
}

std::string ParseApplications(BytesView table) {
  std::vector<std::string> elements;
  ForEachAttribute(table, [&](int, BytesView payload) {
    if (const auto app = ReadStruct<dcb_app>(payload)) elements.push_back(ApplicationText(*app));
  });
  return ListValue(std::move(elements));
}

void StoreDcb(const DeviceField& field, BytesView payload, DeviceState& state) {
  if (field.id == DCB_ATTR_IEEE_APP_TABLE) return SetValue(state, field.name, ParseApplications(payload));
  const bool counts = field.id == DCB_ATTR_IEEE_PFC;
  StoreField(state, field, counts ? payload.first(std::min(payload.size(), kPfcSettings)) : payload);
}

}  // namespace

Message GetDeviceMessage(int index) {
  Message message = SettingsMessage(RTM_GETLINK, index);
  message.PutU32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
  return message;
}

void ParseDevice(const Received& received, DeviceState& state) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<ifinfomsg>(rest);
  if (received.type != RTM_NEWLINK || !header) return;
  SetValue(state, "link.flags", std::to_string(header->ifi_flags & kChangeableFlags));
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == IFLA_XDP) return ParseXdp(payload, state);
    const DeviceField* field = FieldOf(DeviceSource::kLink, type);
    if (field != nullptr && field->id != kLinkFlags) StoreField(state, *field, payload);
  });
}

Message SetLinkMessage(int index, const DeviceState& values) {
  const std::string* flags = values.Find("link.flags");
  Message message =
      flags == nullptr
          ? SettingsMessage(RTM_SETLINK, index)
          : SettingsMessage(RTM_SETLINK, index, static_cast<unsigned>(NumberOf(*flags)), kChangeableFlags);
  for (const DeviceField& field : DeviceFields()) {
    const bool attribute = field.source == DeviceSource::kLink && field.id != kLinkFlags;
    const std::string* value = attribute ? values.Find(field.name) : nullptr;
    if (value != nullptr) PutField(message, field, *value);
  }
  return message;
}

Message SetXdpMessage(int index, const DeviceField& field, int program) {
  Message message = SettingsMessage(RTM_SETLINK, index);
  {
    const Message::Nest xdp(message, IFLA_XDP);
    message.PutU32(IFLA_XDP_FD, static_cast<std::uint32_t>(program));
    message.PutU32(IFLA_XDP_FLAGS, XdpModeOf(field));
  }
  return message;
}

Message GetQdiscMessage(int index, const DeviceField& field) {
  return QdiscMessage(RTM_GETQDISC, NLM_F_ACK | NLM_F_ECHO, index, field, 0);
}

std::optional<std::string> ParseQdisc(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<tcmsg>(rest);
  if (received.type != RTM_NEWQDISC || !header || header->tcm_handle == 0) return std::nullopt;
  std::string kind;
  std::string options;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == TCA_KIND) kind = ReadString(payload);
    if (type == TCA_OPTIONS) options = ToHex(payload);
  });
  const auto* handle = reinterpret_cast<const std::uint8_t*>(&header->tcm_handle);
  std::string text = kind.append("/").append(ToHex({handle, sizeof(header->tcm_handle)}));
  text.append("/").append(options);
  const DeviceField& field = *FindDeviceField("qdisc.root");
  return IsDeviceValue(field, text) ? std::optional(std::move(text)) : std::nullopt;
}

std::optional<Message> AddQdiscMessage(int index, const DeviceField& field, std::string_view value) {
  const auto parts = Split(value, '/');
  if (parts.size() != 3) return std::nullopt;
  const auto bytes = FromHex(parts[1]);
  const auto options = FromHex(parts[2]);
  const auto handle = bytes ? ReadStruct<std::uint32_t>(*bytes) : std::nullopt;
  if (!handle || !options) return std::nullopt;
  Message message = QdiscMessage(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, index, field, *handle);
  message.PutString(TCA_KIND, parts[0]);
  if (!options->empty()) message.Put(TCA_OPTIONS, *options);
  return message;
}

Message DeleteQdiscMessage(int index, const DeviceField& field) {
  return QdiscMessage(RTM_DELQDISC, 0, index, field, 0);
}

void ParseDcbSettings(const Received& received, DeviceState& state) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<dcbmsg>(rest);
  if (received.type != RTM_GETDCB || !header || header->cmd != DCB_CMD_IEEE_GET) return;
  ForEachAttribute(rest, [&](int type, BytesView list) {
    if (type != DCB_ATTR_IEEE) return;
    ForEachAttribute(list, [&](int item, BytesView payload) {
      if (const DeviceField* field = FieldOf(DeviceSource::kDcb, item)) StoreDcb(*field, payload, state);
    });
  });
}

Message SetDcbMessage(const std::string& netdev, const DeviceState& values) {
  Message message = DcbMessage(DCB_CMD_IEEE_SET, netdev);
  {
    const Message::Nest ieee(message, DCB_ATTR_IEEE);
    for (const DeviceField& field : DeviceFields()) {
      const bool own = field.source == DeviceSource::kDcb && field.id != DCB_ATTR_IEEE_APP_TABLE;
      const std::string* value = own ? values.Find(field.name) : nullptr;
      if (value == nullptr) continue;
      auto bytes = FromHex(*value).value_or(std::vector<std::uint8_t>{});
      if (field.id == DCB_ATTR_IEEE_PFC) bytes.resize(sizeof(ieee_pfc));
      message.Put(field.id, bytes);
    }
  }
  return message;
}

std::optional<Message> ChangeDcbApplicationMessage(const std::string& netdev, std::string_view element,
                                                   bool add) {
  constexpr int kPcp = 255;           // DCB_APP_SEL_PCP, Linux 6.3: with an attribute of its own
  constexpr int kDcbApplication = 2;  // DCB_ATTR_DCB_APP
  std::vector<std::int64_t> numbers;
  for (const std::string& part : Split(element, '/')) {
    const auto number = ParseInt(part);
    if (!number || *number < 0) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.size() != 3) return std::nullopt;
  const dcb_app app{static_cast<std::uint8_t>(numbers[0]), static_cast<std::uint8_t>(numbers[2]),
                    static_cast<std::uint16_t>(numbers[1])};
  Message message = DcbMessage(add ? DCB_CMD_IEEE_SET : DCB_CMD_IEEE_DEL, netdev);
  {
    const Message::Nest ieee(message, DCB_ATTR_IEEE);
    const Message::Nest table(message, DCB_ATTR_IEEE_APP_TABLE);
    message.PutStruct(app.selector == kPcp ? kDcbApplication : static_cast<int>(DCB_ATTR_IEEE_APP), app);
  }
  return message;
}

std::optional<Error> ParseDcbAnswer(const Received& received) {
  BytesView rest = received.payload;
  if (!TakeHeader<dcbmsg>(rest)) return std::nullopt;
  std::uint8_t status = 0;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == DCB_ATTR_IEEE) Store(status, ReadStruct<std::uint8_t>(payload));
  });
  // A negative errno in an unsigned byte (nla_put_u8 in dcbnl_ieee_set).
  constexpr int kByteRange = 256;
  if (status == 0) return std::nullopt;
  return SysError(kByteRange - status, "the driver refuses it");
}

}  // namespace railhead::nl
