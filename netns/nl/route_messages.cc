#include "netns/nl/route_messages.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "netns/nl/attributes.h"

namespace railhead::nl {
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

}  // namespace railhead::nl
