// rtnetlink address messages: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/if_addr.h; net/ipv4/devinet.c, net/ipv6/addrconf.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <optional>

#include "netns/base/addresses.h"
#include "netns/nl/message.h"
#include "netns/nl/route.h"

namespace railhead::nl {

// IPv4: with the broadcast address of the prefix, as every CNI plugin sets it.
// IPv6: without duplicate address detection: addresses come from an IPAM, and
// would not be usable for a second or two.
Message AddAddressMessage(int index, const IpPrefix& address);
Message DeleteAddressMessage(int index, const IpPrefix& address);
// Of one link, filtered by the kernel (strict checking); 0: of all.
Message DumpAddressesMessage(int index);

std::optional<LinkAddress> ParseAddress(const Received& received);

}  // namespace railhead::nl
