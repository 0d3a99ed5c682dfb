// Whether the host uses a link: what somebody has configured there, not what the kernel does by itself on
// every link that is up. Threads: pure.
#pragma once

#include "netns/base/ip_address.h"
#include "netns/nl/route.h"

namespace railhead {

// All addresses but the link-local one that the kernel gives every IPv6 link.
bool IsOfHost(const IpPrefix& address);
// All routes but those that come with an address, and what a router tells everybody beside his default route.
bool IsOfHost(const Route& route);

}  // namespace railhead
