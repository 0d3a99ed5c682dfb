// One network namespace as rtnetlink reports it, attribute by attribute, as text.
//
// It does not use RouteApi, since it must not miss attributes that our own parsers do not know. It names
// links instead of numbering them. It omits what the kernel counts or changes by itself: statistics, carrier,
// operational state, lifetimes, qdisc, peer numbers.
// Source: include/uapi/linux/{if_link,if_addr,rtnetlink,fib_rules}.h.
// Threads: any. Errors: the kernel's.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead::crash {

// Links with their IPv4 and IPv6 settings and, of a PF, its VFs; addresses, routes of
// all tables, rules. A line each, every line starting with `prefix`.
Result<std::vector<std::string>> ReadRawState(const NetNs& ns, const std::string& prefix);

}  // namespace railhead::crash
