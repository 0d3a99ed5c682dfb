#include "netns/nl/link_messages.h"

#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "netns/base/text.h"

namespace railhead::nl {
namespace {

// Kinds whose IFLA_LINK is the device below (a veth's is its peer, a tunnel's the device it sends by). They
// stay when that device moves: net/8021q/vlan.c, drivers/net/macvlan.c, drivers/net/ipvlan/ipvlan_main.c.
constexpr std::array<std::string_view, 5> kStackedKinds = {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"};

Message LinkMessage(std::uint16_t type, int index, unsigned flags = 0, unsigned change = 0,
                    std::uint16_t netlink_flags = 0) {
  Message message(type, netlink_flags);
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = index;
  header.ifi_flags = flags;
  header.ifi_change = change;
  message.Header(header);
  return message;
}

Message AltNameMessage(std::uint16_t type, std::uint16_t netlink_flags, int index, const std::string& name) {
  Message message = LinkMessage(type, index, 0, 0, netlink_flags);
  {
    const Message::Nest list(message, IFLA_PROP_LIST);
    message.PutString(IFLA_ALT_IFNAME, name);
  }
  return message;
}

std::string ParseKind(BytesView linkinfo) {
  std::string kind;
  ForEachAttribute(linkinfo, [&](int type, BytesView payload) {
    if (type == IFLA_INFO_KIND) kind = ReadString(payload);
  });
  return kind;
}

std::optional<AddrGenMode> ParseAddrGenMode(BytesView af_spec) {
  std::optional<AddrGenMode> mode;
  ForEachAttribute(af_spec, [&](int family, BytesView attributes) {
    if (family != AF_INET6) return;
    ForEachAttribute(attributes, [&](int type, BytesView payload) {
      if (type != IFLA_INET6_ADDR_GEN_MODE) return;
      const auto value = ReadStruct<std::uint8_t>(payload);
      if (value && *value <= static_cast<std::uint8_t>(AddrGenMode::kRandom)) {
        mode = static_cast<AddrGenMode>(*value);
      }
    });
  });
  return mode;
}

std::vector<std::string> ParseAltNames(BytesView prop_list) {
  std::vector<std::string> names;
  ForEachAttribute(prop_list, [&](int type, BytesView payload) {
    if (type == IFLA_ALT_IFNAME) names.push_back(ReadString(payload));
  });
  return names;
}

void StoreLinkAttribute(Link& link, int type, BytesView payload) {
  switch (type) {
    case IFLA_IFNAME:
      link.name = ReadString(payload);
      break;
    case IFLA_ADDRESS:
      Store(link.mac, ReadMac(payload));
      break;
    case IFLA_PERM_ADDRESS:
      Store(link.permanent_mac, ReadMac(payload));
      break;
    case IFLA_MTU:
      Store(link.mtu, ReadStruct<std::int32_t>(payload));
      break;
    case IFLA_IFALIAS:
      link.alias = ReadString(payload);
      break;
    case IFLA_PARENT_DEV_NAME:
      link.parent_device = ReadString(payload);
      break;
    case IFLA_MASTER:
      Store(link.master, ReadStruct<std::int32_t>(payload));
      break;
    case IFLA_TXQLEN:
      Store(link.tx_queue_len, ReadStruct<std::int32_t>(payload));
      break;
    case IFLA_PROP_LIST:
      link.alt_names = ParseAltNames(payload);
      break;
    case IFLA_LINKINFO:
      link.kind = ParseKind(payload);
      break;
    case IFLA_AF_SPEC:
      link.addr_gen_mode = ParseAddrGenMode(payload);
      break;
    default:
      break;
  }
}

void PutAfSpec(Message& message, const LinkChange& change) {
  if (!change.addr_gen_mode && change.ipv4.empty()) return;
  const Message::Nest spec(message, IFLA_AF_SPEC);
  if (!change.ipv4.empty()) {
    const Message::Nest inet(message, AF_INET);
    const Message::Nest conf(message, IFLA_INET_CONF);
    for (const auto& [id, value] : change.ipv4) {
      message.PutU32(static_cast<int>(id), static_cast<std::uint32_t>(value));
    }
  }
  if (change.addr_gen_mode) {
    const Message::Nest inet6(message, AF_INET6);
    message.PutU8(IFLA_INET6_ADDR_GEN_MODE, static_cast<std::uint8_t>(*change.addr_gen_mode));
  }
}

}  // namespace

Message GetLinkMessage(const std::string& name) {
  Message message = LinkMessage(RTM_GETLINK, 0);
  message.PutString(name.size() < IFNAMSIZ ? IFLA_IFNAME : IFLA_ALT_IFNAME, name);
  return message;
}

Message GetLinkMessage(int index) {
  return LinkMessage(RTM_GETLINK, index);
}

Message DumpLinksMessage(bool lean) {
  Message message = LinkMessage(RTM_GETLINK, 0);
  if (lean) message.PutU32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
  return message;
}

std::optional<Link> ParseLink(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<ifinfomsg>(rest);
  if (received.type != RTM_NEWLINK || !header || header->ifi_family != AF_UNSPEC) return std::nullopt;
  Link link;
  link.index = header->ifi_index;
  link.up = (header->ifi_flags & IFF_UP) != 0;
  link.carrier = (header->ifi_flags & kLowerUp) != 0;
  link.promiscuous = (header->ifi_flags & IFF_PROMISC) != 0;
  link.all_multicast = (header->ifi_flags & IFF_ALLMULTI) != 0;
  ForEachAttribute(rest, [&](int type, BytesView payload) { StoreLinkAttribute(link, type, payload); });
  if (link.index <= 0 || link.name.empty()) return std::nullopt;
  return link;
}

std::optional<Stacked> ParseStacked(const Received& received) {
  auto link = ParseLink(received);
  if (!link) return std::nullopt;
  if (!Contains(kStackedKinds, link->kind)) return std::nullopt;
  BytesView rest = received.payload;
  (void)TakeHeader<ifinfomsg>(rest);
  Stacked stacked{std::move(*link), 0, std::nullopt};
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == IFLA_LINK) Store(stacked.lower, ReadStruct<std::int32_t>(payload));
    if (type == IFLA_LINK_NETNSID) stacked.lower_nsid = ReadStruct<std::int32_t>(payload);
  });
  if (stacked.lower <= 0) return std::nullopt;
  return stacked;
}

Message GetNsidMessage(int fd) {
  Message message(RTM_GETNSID, 0);
  message.Header(rtgenmsg{});
  message.PutU32(NETNSA_FD, static_cast<std::uint32_t>(fd));
  return message;
}

std::optional<int> ParseNsid(const Received& received) {
  BytesView rest = received.payload;
  if (received.type != RTM_NEWNSID || !TakeHeader<rtgenmsg>(rest)) return std::nullopt;
  std::optional<int> nsid;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == NETNSA_NSID) nsid = ReadStruct<std::int32_t>(payload);
  });
  if (nsid && *nsid < 0) return std::nullopt;  // NETNSA_NSID_NOT_ASSIGNED
  return nsid;
}

std::optional<LinkEvent> ParseLinkEvent(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<ifinfomsg>(rest);
  const bool gone = received.type == RTM_DELLINK;
  // AF_BRIDGE events tell of bridge ports, not of the link itself.
  if ((received.type != RTM_NEWLINK && !gone) || !header || header->ifi_family != AF_UNSPEC) {
    return std::nullopt;
  }
  constexpr unsigned kReady = IFF_UP | IFF_RUNNING | kLowerUp;
  return LinkEvent{header->ifi_index, gone, !gone && (header->ifi_flags & kReady) == kReady};
}

Message ChangeLinkMessage(int index, const LinkChange& change) {
  unsigned flags = 0;
  unsigned mask = 0;
  const auto put_flag = [&](unsigned flag, const std::optional<bool>& on) {
    if (on) mask |= flag;
    if (on.value_or(false)) flags |= flag;
  };
  put_flag(IFF_UP, change.up);
  put_flag(IFF_PROMISC, change.promiscuous);
  put_flag(IFF_ALLMULTI, change.all_multicast);
  Message message = LinkMessage(RTM_SETLINK, index, flags, mask);
  if (change.name) message.PutString(IFLA_IFNAME, *change.name);
  if (change.mac) message.Put(IFLA_ADDRESS, change.mac->bytes);
  if (change.mtu) message.PutU32(IFLA_MTU, static_cast<std::uint32_t>(*change.mtu));
  if (change.tx_queue_len) message.PutU32(IFLA_TXQLEN, static_cast<std::uint32_t>(*change.tx_queue_len));
  if (change.alias) {
    // Without its NUL: an empty one has to be of length 0 to remove the alias.
    const auto* text = reinterpret_cast<const std::uint8_t*>(change.alias->data());
    message.Put(IFLA_IFALIAS, {text, change.alias->size()});
  }
  PutAfSpec(message, change);
  return message;
}

Message DeleteLinkMessage(int index) {
  return LinkMessage(RTM_DELLINK, index);
}

Message AddAltNameMessage(int index, const std::string& name) {
  return AltNameMessage(RTM_NEWLINKPROP, NLM_F_CREATE | NLM_F_EXCL, index, name);
}

Message DeleteAltNameMessage(int index, const std::string& name) {
  return AltNameMessage(RTM_DELLINKPROP, 0, index, name);
}

Message MoveLinkMessage(int index, int target_fd, const std::string& name, std::optional<int> mtu) {
  Message message = LinkMessage(RTM_SETLINK, index);
  message.PutU32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(target_fd));
  message.PutString(IFLA_IFNAME, name);
  if (mtu) message.PutU32(IFLA_MTU, static_cast<std::uint32_t>(*mtu));
  return message;
}

}  // namespace railhead::nl
