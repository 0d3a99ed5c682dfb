// rtnetlink route messages: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/rtnetlink.h; net/ipv4/fib_frontend.c,
// net/ipv6/route.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "netns/base/addresses.h"
#include "netns/nl/route.h"
#include "netns/nl/socket.h"

namespace railhead::nl {

Message AddRouteMessage(const Route& route);
Message DeleteRouteMessage(const Route& route);
// Unicast routes of one family and table (0: all), filtered by the kernel.
Message DumpRoutesMessage(int family, std::uint32_t table);

// nullopt unless it is a unicast route. A multipath route has link 0 and no gateway.
std::optional<Route> ParseRoute(const Received& received);

// rtnetlink routing rules: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/fib_rules.h; net/core/fib_rules.c.
// Threads: pure functions. Parsers take any bytes.

Message AddRuleMessage(const Rule& rule);
Message DeleteRuleMessage(const Rule& rule);
Message DumpRulesMessage(int family);

// nullopt for rules that Rule cannot express: another action than "lookup", or
// a selector beside source prefix and outgoing interface (mark, destination, ...).
std::optional<Rule> ParseRule(const Received& received);

// rtnetlink address messages: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/if_addr.h; net/ipv4/devinet.c, net/ipv6/addrconf.c.
// Threads: pure functions. Parsers take any bytes.

// IPv4: with the broadcast address of the prefix, as every CNI plugin sets it.
// IPv6: without duplicate address detection: addresses come from an IPAM, and
// would not be usable for a second or two.
Message AddAddressMessage(int index, const IpPrefix& address);
Message DeleteAddressMessage(int index, const IpPrefix& address);
// Of one link, filtered by the kernel (strict checking); 0: of all.
Message DumpAddressesMessage(int index);

std::optional<LinkAddress> ParseAddress(const Received& received);

// rtnetlink neighbour messages: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/neighbour.h; net/core/neighbour.c.
// Threads: pure functions. Parsers take any bytes.

// Replaces what is there.
Message SetNeighbourMessage(const Neighbour& neighbour);
// The kernel asks the link for the address at once.
Message ResolveNeighbourMessage(const Neighbour& neighbour);
Message DeleteNeighbourMessage(const Neighbour& neighbour);
// Of one link, filtered by the kernel (strict checking).
Message DumpNeighboursMessage(int index);

// Of RTM_NEWNEIGH, asked for or as an event.
std::optional<Neighbour> ParseNeighbour(const Received& received);

// The kernel sends to its MAC now (NUD_VALID in include/net/neighbour.h), which is one
// host's: in a namespace without IPv4 addresses every address counts as broadcast.
bool IsResolved(const Neighbour& neighbour);
// The kernel gave up asking (NUD_FAILED).
bool HasFailed(const Neighbour& neighbour);

}  // namespace railhead::nl
