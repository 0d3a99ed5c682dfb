// A device stacked on another one, made in a namespace of its own: a VLAN of it, or, for its untagged
// frames, a macvlan.
//
// It goes with that namespace, and with the device below. While it is there the device below has to stay
// where it is: RouteApi::ListUppers in netns/kernel.h.
// Needs CAP_NET_ADMIN in both namespaces. Threads: any. Errors: kExists when the name is taken, else what the
// kernel refused. Source: net/8021q/vlan_netlink.c, drivers/net/macvlan.c.
#pragma once

#include <optional>
#include <string>

#include "netns/base/mac_address.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

struct UpperLink {
  std::string name;
  std::optional<int> vlan;  // 1..4094; nullopt: a macvlan
  MacAddress mac;           // zero: as the kernel chooses
  int priority = 0;         // 0..7, in the tag of all that a VLAN sends
};

// On link `lower` of `ns`; in `target` it is down. The index there.
Result<int> AddUpperLink(const NetNs& ns, int lower, const UpperLink& upper, const NetNs& target);

}  // namespace railhead
