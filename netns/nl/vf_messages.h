// VF settings through the PF: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/if_link.h (IFLA_VF_*), net/core/rtnetlink.c
// (rtnl_fill_vfinfo, do_setvfinfo).
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netns/nl/link.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead::nl {

Message GetVfsMessage(int pf_index);

// All VFs of an RTM_NEWLINK answer, in its order.
std::vector<VfState> ParseVfs(const Received& received);
// VF `vf` of it; nullopt: the PF has no such VF.
std::optional<VfState> ParseVf(const Received& received, int vf);

// One setting as one message. The kernel takes several in one, in their order,
// but stops at the first that the driver refuses without saying which: sent one
// by one the error names it.
struct VfStep {
  std::string what;  // "VLAN 100, QoS 3"
  Message message;
};
std::vector<VfStep> SetVfMessages(int pf_index, int vf, const VfChange& change);

}  // namespace railhead::nl
