// Interfaces that are stacked on a link, in other network namespaces.
//
// Threads: any. Needs CAP_NET_ADMIN in both namespaces.
// Source: net/8021q/vlan_netlink.c, drivers/net/macvlan.c, rtnl_newlink in net/core/rtnetlink.c.
#pragma once

#include <optional>
#include <string>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/ns/netns.h"

namespace railhead {

// A VLAN, or, for the lower link's untagged frames, a macvlan. It ends with its namespace, and with the link
// below. While it exists the link below has to stay where it is: RouteApi::ListUppers in netns/kernel.h.
struct UpperLink {
  std::string name;
  std::optional<int> vlan;  // 1..4094; nullopt: a macvlan
  MacAddress mac;           // zero: as the kernel chooses
  int priority = 0;         // 0..7, in the tag of every frame that a VLAN sends
};

// On link `lower` of `ns`; in `target` it is down. The index there. Errors: kExists when the name is taken,
// else the kernel's refusal.
Result<int> AddUpperLink(const NetNs& ns, int lower, const UpperLink& upper, const NetNs& target);

}  // namespace railhead

namespace railhead::nl {

class Socket;

// Whether an interface of any namespace gets the untagged frames of the Ethernet link `lower`, or sends such
// frames through it. The kernel lists an upper interface only in its own namespace, which may have no name.
// So this asks for uppers that the kernel refuses to make, and the reason tells what is there. The kernel may
// load its module macvlan for that.
//
// `taken`: the name of an interface of `elsewhere` that the socket's namespace does not have.
// Errors: kUnsupported when the kernel has no macvlan, kExists when the socket's namespace has `taken`, too.
Result<bool> HasUppers(Socket& socket, int lower, const NetNs& elsewhere, const std::string& taken);

}  // namespace railhead::nl
