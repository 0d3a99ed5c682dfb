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

// One setting as one message. The kernel takes several in one message, in their order. It then stops at the
// first one that the driver refuses, without saying which. With one message for each, the error names the
// setting.
struct VfStep {
  std::string what;  // "vlan 100, QoS 3"
  Message message;
};
std::vector<VfStep> SetVfMessages(int pf_index, int vf, const VfSettings& change);

}  // namespace railhead::nl

namespace railhead {

// The settings of all VFs of a PF, in one message.
//
// Source: net/core/rtnetlink.c (rtnl_fill_vfinfo), without statistics. If a driver asks its firmware for each
// VF, the answer takes as long as the firmware does.
// Threads: thread-safe. In the calling thread's network namespace. Needs no privilege.

// By index. kNotFound: the PF does not exist.
Result<std::map<int, VfSettings>> ListVfs(const std::string& pf);

// A device stacked on another one, made in a namespace of its own: a VLAN, or, for the lower device's
// untagged frames, a macvlan.
//
// It ends with that namespace, and with the device below. While it exists the device below has to stay where
// it is: RouteApi::ListUppers in netns/kernel.h.
// Needs CAP_NET_ADMIN in both namespaces. Threads: any. Errors: kExists when the name is taken, else the
// kernel's refusal. Source: net/8021q/vlan_netlink.c, drivers/net/macvlan.c.

struct UpperLink {
  std::string name;
  std::optional<int> vlan;  // 1..4094; nullopt: a macvlan
  MacAddress mac;           // zero: as the kernel chooses
  int priority = 0;         // 0..7, in the tag of every frame that a VLAN sends
};

// On link `lower` of `ns`; in `target` it is down. The index there.
Result<int> AddUpperLink(const NetNs& ns, int lower, const UpperLink& upper, const NetNs& target);

// Whether the host uses a link: counts settings that somebody has made, not those that the kernel makes on
// every link that is up. Threads: pure.

// All addresses but the link-local one that the kernel gives every IPv6 link.
bool IsOfHost(const IpPrefix& address);
// All routes except those that come with an address, and those that a router advertises to everybody beside
// its default route.
bool IsOfHost(const Route& route);

}  // namespace railhead
