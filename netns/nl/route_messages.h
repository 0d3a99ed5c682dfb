// rtnetlink route messages: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/rtnetlink.h; net/ipv4/fib_frontend.c,
// net/ipv6/route.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "netns/nl/message.h"
#include "netns/nl/route.h"

namespace railhead::nl {

Message AddRouteMessage(const Route& route);
Message DeleteRouteMessage(const Route& route);
// Unicast routes of one family and table (0: all), filtered by the kernel.
Message DumpRoutesMessage(int family, std::uint32_t table);

// nullopt unless it is a unicast route. A multipath route has link 0 and no gateway.
std::optional<Route> ParseRoute(const Received& received);

}  // namespace railhead::nl
