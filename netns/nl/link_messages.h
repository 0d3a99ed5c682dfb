// rtnetlink link messages: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/if_link.h; net/core/rtnetlink.c (rtnl_getlink,
// do_setlink), net/ipv4/devinet.c and net/ipv6/addrconf.c (set_link_af).
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <optional>
#include <string>

#include "netns/nl/link.h"
#include "netns/nl/message.h"

namespace railhead::nl {

// IFF_LOWER_UP: net/if.h has no name for it and conflicts with linux/if.h, which has.
inline constexpr unsigned kLowerUp = 1U << 16U;

// By name (alternative names are names too) or index. The answer includes statistics: without them the kernel
// omits addr_gen_mode too.
Message GetLinkMessage(const std::string& name);
Message GetLinkMessage(int index);
// A short message, with which FindLinkOfDevice reads every link.
Message DumpLinksMessage(bool lean);

// nullopt when it is not an RTM_NEWLINK of a usable form.
std::optional<Link> ParseLink(const Received& received);

// A link that is stacked on another one and that stays when the other one moves.
struct Stacked {
  Link link;
  int lower = 0;                  // index of the other one
  std::optional<int> lower_nsid;  // its namespace by this one's numbers (RTM_GETNSID); nullopt: this one
};
// nullopt when it is another link.
std::optional<Stacked> ParseStacked(const Received& received);

// The number by which this namespace knows the namespace of `fd`.
Message GetNsidMessage(int fd);
// nullopt: the namespace has no number, so nothing here refers to it.
std::optional<int> ParseNsid(const Received& received);

// A link's state by an RTM_NEWLINK or RTM_DELLINK, which may be an answer or an event.
struct LinkEvent {
  int index = 0;
  bool gone = false;
  // Up, with carrier, and its queues attached. IFF_RUNNING follows carrier when the kernel's link watch has
  // run (net/core/link_watch.c). The kernel silently drops packets that are sent earlier.
  bool ready = false;
};
std::optional<LinkEvent> ParseLinkEvent(const Received& received);

Message ChangeLinkMessage(int index, const LinkChange& change);
Message DeleteLinkMessage(int index);
Message AddAltNameMessage(int index, const std::string& name);
Message DeleteAltNameMessage(int index, const std::string& name);
Message MoveLinkMessage(int index, int target_fd, const std::string& name, std::optional<int> mtu);

}  // namespace railhead::nl
