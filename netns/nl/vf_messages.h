// VF settings through the PF: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/if_link.h (IFLA_VF_*), net/core/rtnetlink.c
// (rtnl_fill_vfinfo, do_setvfinfo).
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/nl/route.h"
#include "netns/nl/socket.h"
#include "netns/nl/vf_settings.h"
#include "netns/ns/netns.h"

namespace railhead::nl {

Message GetVfsMessage(int pf_index);

// All VFs of an RTM_NEWLINK answer, by number.
std::map<int, VfSettings> ParseVfs(const Received& received);

// One setting as one message. The kernel takes several in one, in their order,
// but stops at the first that the driver refuses without saying which: sent one
// by one the error names it.
struct VfStep {
  std::string what;  // "vlan 100, QoS 3"
  Message message;
};
std::vector<VfStep> SetVfMessages(int pf_index, int vf, const VfSettings& change);

}  // namespace railhead::nl

namespace railhead {

// What a PF says of all its VFs, in one message.
//
// Source: net/core/rtnetlink.c (rtnl_fill_vfinfo), without statistics. Where a driver asks its firmware
// for each VF this takes as long as that does.
// Threads: thread-safe. In the calling thread's network namespace. Needs no privilege.

// By index. kNotFound: there is no such PF.
Result<std::map<int, VfSettings>> ListVfs(const std::string& pf);

// A device stacked on another one, made in a namespace of its own: a VLAN of it, or, for its untagged
// frames, a macvlan.
//
// It goes with that namespace, and with the device below. While it is there the device below has to stay
// where it is: RouteApi::ListUppers in netns/kernel.h.
// Needs CAP_NET_ADMIN in both namespaces. Threads: any. Errors: kExists when the name is taken, else what the
// kernel refused. Source: net/8021q/vlan_netlink.c, drivers/net/macvlan.c.

struct UpperLink {
  std::string name;
  std::optional<int> vlan;  // 1..4094; nullopt: a macvlan
  MacAddress mac;           // zero: as the kernel chooses
  int priority = 0;         // 0..7, in the tag of all that a VLAN sends
};

// On link `lower` of `ns`; in `target` it is down. The index there.
Result<int> AddUpperLink(const NetNs& ns, int lower, const UpperLink& upper, const NetNs& target);

// Whether the host uses a link: what somebody has configured there, not what the kernel does by itself on
// every link that is up. Threads: pure.

// All addresses but the link-local one that the kernel gives every IPv6 link.
bool IsOfHost(const IpPrefix& address);
// All routes but those that come with an address, and what a router tells everybody beside his default route.
bool IsOfHost(const Route& route);

}  // namespace railhead
