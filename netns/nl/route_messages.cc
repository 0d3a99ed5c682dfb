#include "netns/nl/route_messages.h"

#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <vector>

namespace railhead {

std::string Route::ToString() const {
  std::string text = destination.length == 0 ? "default" : destination.ToString();
  if (gateway) text += " via " + gateway->ToString();
  if (source) text += " src " + source->ToString();
  if (link != 0) text += " dev " + std::to_string(link);
  if (table != kTableMain) text += " table " + std::to_string(table);
  if (metric != 0) text += " metric " + std::to_string(metric);
  return text;
}

namespace nl {
namespace {

BytesView View(const IpAddress& address) {
  return {address.Data(), address.Size()};
}

void PutGateway(Message& message, const Route& route) {
  if (!route.gateway) return;
  if (route.gateway->Family() == route.destination.address.Family()) {
    message.Put(RTA_GATEWAY, View(*route.gateway));
    return;
  }
  // IPv4 through an IPv6 gateway: struct rtvia, a family and the address.
  const auto family = static_cast<std::uint16_t>(route.gateway->Family());
  std::vector<std::uint8_t> via(sizeof(family));
  std::memcpy(via.data(), &family, sizeof(family));
  via.insert(via.end(), route.gateway->Data(), route.gateway->Data() + route.gateway->Size());
  message.Put(RTA_VIA, via);
}

Message RouteMessage(std::uint16_t type, std::uint16_t flags, const Route& route) {
  Message message(type, flags);
  rtmsg header{};
  header.rtm_family = static_cast<std::uint8_t>(route.destination.address.Family());
  header.rtm_dst_len = static_cast<std::uint8_t>(route.destination.length);
  header.rtm_table = static_cast<std::uint8_t>(route.table < 256 ? route.table : 0U);
  header.rtm_protocol = route.protocol;
  header.rtm_scope = static_cast<std::uint8_t>(route.scope);
  header.rtm_type = RTN_UNICAST;
  message.Header(header);
  // The length alone identifies a default route; an address would be ignored.
  const IpPrefix network = route.destination.Network();
  if (network.length > 0) message.Put(RTA_DST, View(network.address));
  PutGateway(message, route);
  if (route.source) message.Put(RTA_PREFSRC, View(*route.source));
  if (route.link != 0) message.PutU32(RTA_OIF, static_cast<std::uint32_t>(route.link));
  if (route.metric != 0) message.PutU32(RTA_PRIORITY, route.metric);
  if (route.table >= 256) message.PutU32(RTA_TABLE, route.table);
  if (route.mtu != 0 || route.advmss != 0) {
    const Message::Nest metrics(message, RTA_METRICS);
    if (route.mtu != 0) message.PutU32(RTAX_MTU, route.mtu);
    if (route.advmss != 0) message.PutU32(RTAX_ADVMSS, route.advmss);
  }
  return message;
}

std::optional<IpAddress> ReadVia(BytesView payload) {
  const auto family = ReadStruct<std::uint16_t>(payload);
  if (!family) return std::nullopt;
  auto address = ReadAddress(payload.subspan(sizeof(*family)));
  if (!address || address->Family() != *family) return std::nullopt;
  return address;
}

}  // namespace

Message AddRouteMessage(const Route& route) {
  return RouteMessage(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, route);
}

Message DeleteRouteMessage(const Route& route) {
  return RouteMessage(RTM_DELROUTE, 0, route);
}

Message DumpRoutesMessage(int family, std::uint32_t table) {
  Message message(RTM_GETROUTE, 0);
  rtmsg header{};
  header.rtm_family = static_cast<std::uint8_t>(family);
  header.rtm_type = RTN_UNICAST;
  message.Header(header);
  if (table != 0) message.PutU32(RTA_TABLE, table);
  return message;
}

namespace {

// Links of a list of struct rtnexthop, each followed by its attributes.
std::vector<int> ReadNextHops(BytesView rest) {
  std::vector<int> links;
  while (const auto hop = ReadStruct<rtnexthop>(rest)) {
    links.push_back(hop->rtnh_ifindex);
    const std::size_t length = RTNH_ALIGN(hop->rtnh_len);
    if (hop->rtnh_len < sizeof(rtnexthop) || length >= rest.size()) break;
    rest = rest.subspan(length);
  }
  return links;
}

void ReadMetrics(BytesView metrics, Route& route) {
  ForEachAttribute(metrics, [&](int type, BytesView payload) {
    if (type == RTAX_MTU) Store(route.mtu, ReadStruct<std::uint32_t>(payload));
    if (type == RTAX_ADVMSS) Store(route.advmss, ReadStruct<std::uint32_t>(payload));
  });
}

}  // namespace

std::optional<Route> ParseRoute(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<rtmsg>(rest);
  if (received.type != RTM_NEWROUTE || !header || header->rtm_type != RTN_UNICAST ||
      (header->rtm_flags & RTM_F_CLONED) != 0) {
    return std::nullopt;
  }
  Route route;
  const int family = header->rtm_family;
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  const IpPrefix any = *IpPrefix::Parse(family == AF_INET ? "0.0.0.0/0" : "::/0");
  route.destination = {any.address, header->rtm_dst_len};
  route.table = header->rtm_table;
  route.scope = static_cast<RouteScope>(header->rtm_scope);
  route.protocol = header->rtm_protocol;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == RTA_DST) Store(route.destination.address, ReadAddress(payload));
    if (type == RTA_GATEWAY) route.gateway = ReadAddress(payload);
    if (type == RTA_VIA) route.gateway = ReadVia(payload);
    if (type == RTA_PREFSRC) route.source = ReadAddress(payload);
    if (type == RTA_MULTIPATH) route.multipath = ReadNextHops(payload);
    if (type == RTA_OIF) Store(route.link, ReadStruct<std::int32_t>(payload));
    if (type == RTA_TABLE) Store(route.table, ReadStruct<std::uint32_t>(payload));
    if (type == RTA_PRIORITY) Store(route.metric, ReadStruct<std::uint32_t>(payload));
    if (type == RTA_METRICS) ReadMetrics(payload, route);
  });
  const IpAddress& destination = route.destination.address;
  if (destination.Family() != family || route.destination.length > destination.Bits()) return std::nullopt;
  return route;
}

}  // namespace nl

std::string Rule::ToString() const {
  std::string text = std::to_string(priority) + ": from ";
  if (!from) {
    text += "all";
  } else {
    text += from->length == from->address.Bits() ? from->address.ToString() : from->ToString();
  }
  if (!iif.empty()) text += " iif " + iif;
  if (!oif.empty()) text += " oif " + oif;
  return text + " lookup " + std::to_string(table);
}

namespace nl {
namespace {

Message RuleMessage(std::uint16_t type, std::uint16_t flags, const Rule& rule) {
  Message message(type, flags);
  fib_rule_hdr header{};
  header.family = static_cast<std::uint8_t>(rule.family);
  header.src_len = rule.from ? static_cast<std::uint8_t>(rule.from->length) : 0;
  header.table = static_cast<std::uint8_t>(rule.table < 256 ? rule.table : 0U);
  header.action = FR_ACT_TO_TBL;
  message.Header(header);
  if (rule.from && rule.from->length > 0) {
    const IpAddress network = rule.from->First();
    message.Put(FRA_SRC, {network.Data(), network.Size()});
  }
  if (!rule.iif.empty()) message.PutString(FRA_IIFNAME, rule.iif);
  if (!rule.oif.empty()) message.PutString(FRA_OIFNAME, rule.oif);
  message.PutU32(FRA_PRIORITY, rule.priority);
  if (rule.table >= 256) message.PutU32(FRA_TABLE, rule.table);
  return message;
}

// Whether an attribute is a selector or action that Rule has no field for. Known ones are listed, so that
// selectors of newer kernels count as foreign; the kernel reports a selector only when it is set.
bool IsForeign(int type, BytesView payload) {
  switch (type) {
    case FRA_SRC:
    case FRA_IIFNAME:
    case FRA_OIFNAME:
    case FRA_PRIORITY:
    case FRA_TABLE:
    case FRA_PROTOCOL:
    case FRA_PAD:
      return false;
    case FRA_SUPPRESS_PREFIXLEN:
    case FRA_SUPPRESS_IFGROUP:
      // Always reported; -1: not set.
      return ReadStruct<std::int32_t>(payload).value_or(-1) != -1;
    default:
      return true;
  }
}

}  // namespace

Message AddRuleMessage(const Rule& rule) {
  Message message = RuleMessage(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule);
  message.PutU8(FRA_PROTOCOL, RTPROT_STATIC);
  return message;
}

Message DeleteRuleMessage(const Rule& rule) {
  return RuleMessage(RTM_DELRULE, 0, rule);
}

Message DumpRulesMessage(int family) {
  Message message(RTM_GETRULE, 0);
  fib_rule_hdr header{};
  header.family = static_cast<std::uint8_t>(family);
  message.Header(header);
  return message;
}

std::optional<Rule> ParseRule(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<fib_rule_hdr>(rest);
  if (received.type != RTM_NEWRULE || !header || header->action != FR_ACT_TO_TBL || header->tos != 0 ||
      header->dst_len != 0 || (header->flags & FIB_RULE_INVERT) != 0) {
    return std::nullopt;
  }
  Rule rule;
  rule.family = header->family;
  rule.table = header->table;
  bool foreign = false;
  std::optional<IpAddress> source;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == FRA_SRC) source = ReadAddress(payload);
    if (type == FRA_IIFNAME) rule.iif = ReadString(payload);
    if (type == FRA_OIFNAME) rule.oif = ReadString(payload);
    if (type == FRA_PRIORITY) Store(rule.priority, ReadStruct<std::uint32_t>(payload));
    if (type == FRA_TABLE) Store(rule.table, ReadStruct<std::uint32_t>(payload));
    foreign = foreign || IsForeign(type, payload);
  });
  if (foreign || rule.table == RT_TABLE_UNSPEC) return std::nullopt;
  if (rule.family != AF_INET && rule.family != AF_INET6) return std::nullopt;
  if (header->src_len > 0) {
    if (!source || source->Family() != rule.family || header->src_len > source->Bits()) return std::nullopt;
    rule.from = IpPrefix{*source, header->src_len};
  }
  return rule;
}

}  // namespace nl

}  // namespace railhead

namespace railhead::nl {
namespace {

Message AddressMessage(std::uint16_t type, std::uint16_t flags, int index, const IpPrefix& address) {
  Message message(type, flags);
  ifaddrmsg header{};
  header.ifa_family = static_cast<std::uint8_t>(address.address.Family());
  header.ifa_prefixlen = static_cast<std::uint8_t>(address.length);
  header.ifa_scope = address.address.IsLoopback() ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  header.ifa_index = static_cast<std::uint32_t>(index);
  message.Header(header);
  const BytesView bytes(address.address.Data(), address.address.Size());
  message.Put(IFA_LOCAL, bytes);
  message.Put(IFA_ADDRESS, bytes);
  return message;
}

}  // namespace

Message AddAddressMessage(int index, const IpPrefix& address) {
  Message message = AddressMessage(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, index, address);
  // A /31 or /32 has none (RFC 3021).
  if (address.address.IsV4() && address.length < 31) {
    const IpAddress broadcast = address.Last();
    message.Put(IFA_BROADCAST, {broadcast.Data(), broadcast.Size()});
  }
  if (address.address.IsV6()) message.PutU32(IFA_FLAGS, IFA_F_NODAD);
  return message;
}

Message DeleteAddressMessage(int index, const IpPrefix& address) {
  return AddressMessage(RTM_DELADDR, 0, index, address);
}

Message DumpAddressesMessage(int index) {
  Message message(RTM_GETADDR, 0);
  ifaddrmsg header{};
  header.ifa_family = AF_UNSPEC;
  header.ifa_index = static_cast<std::uint32_t>(index);
  message.Header(header);
  return message;
}

std::optional<LinkAddress> ParseAddress(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<ifaddrmsg>(rest);
  if (received.type != RTM_NEWADDR || !header) return std::nullopt;
  // With a peer IFA_ADDRESS is the peer's; IPv6 has IFA_LOCAL only then.
  std::optional<IpAddress> local;
  std::optional<IpAddress> address;
  LinkAddress found;
  found.link = static_cast<int>(header->ifa_index);
  found.flags = header->ifa_flags;  // the lowest eight of them
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == IFA_LOCAL) local = ReadAddress(payload);
    if (type == IFA_ADDRESS) address = ReadAddress(payload);
    if (type == IFA_FLAGS) Store(found.flags, ReadStruct<std::uint32_t>(payload));
    if (type == IFA_PROTO) Store(found.protocol, ReadStruct<std::uint8_t>(payload));
  });
  if (!local) local = address;
  if (!local || local->Family() != header->ifa_family || header->ifa_prefixlen > local->Bits()) {
    return std::nullopt;
  }
  found.prefix = {*local, header->ifa_prefixlen};
  return found;
}

namespace {

Message NeighbourMessage(std::uint16_t type, std::uint16_t flags, const Neighbour& neighbour,
                         std::uint8_t neighbour_flags = 0) {
  Message message(type, flags);
  ndmsg header{};
  header.ndm_family = static_cast<std::uint8_t>(neighbour.address.Family());
  header.ndm_ifindex = neighbour.link;
  header.ndm_state = neighbour.state;
  header.ndm_flags = neighbour_flags;
  message.Header(header);
  message.Put(NDA_DST, {neighbour.address.Data(), neighbour.address.Size()});
  return message;
}

}  // namespace

Message SetNeighbourMessage(const Neighbour& neighbour) {
  Message message = NeighbourMessage(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, neighbour);
  if (!neighbour.mac.IsZero()) message.Put(NDA_LLADDR, neighbour.mac.bytes);
  return message;
}

Message ResolveNeighbourMessage(const Neighbour& neighbour) {
  return NeighbourMessage(RTM_NEWNEIGH, NLM_F_CREATE, neighbour, NTF_USE);
}

Message DeleteNeighbourMessage(const Neighbour& neighbour) {
  return NeighbourMessage(RTM_DELNEIGH, 0, neighbour);
}

Message DumpNeighboursMessage(int index) {
  Message message(RTM_GETNEIGH, 0);
  ndmsg header{};
  header.ndm_family = AF_UNSPEC;
  message.Header(header);
  message.PutU32(NDA_IFINDEX, static_cast<std::uint32_t>(index));
  return message;
}

std::optional<Neighbour> ParseNeighbour(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<ndmsg>(rest);
  if (received.type != RTM_NEWNEIGH || !header) return std::nullopt;
  Neighbour neighbour;
  neighbour.link = header->ndm_ifindex;
  neighbour.state = header->ndm_state;
  std::optional<IpAddress> address;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == NDA_DST) address = ReadAddress(payload);
    if (type == NDA_LLADDR) Store(neighbour.mac, ReadMac(payload));
  });
  if (!address || address->Family() != header->ndm_family) return std::nullopt;
  neighbour.address = *address;
  return neighbour;
}

bool IsResolved(const Neighbour& neighbour) {
  constexpr unsigned kValid = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
  return (neighbour.state & kValid) != 0 && !neighbour.mac.IsZero() && !neighbour.mac.IsMulticast();
}

bool HasFailed(const Neighbour& neighbour) {
  return (neighbour.state & NUD_FAILED) != 0;
}

}  // namespace railhead::nl
