// VF settings through the PF: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/if_link.h (IFLA_VF_*), net/core/rtnetlink.c
// (rtnl_fill_vfinfo, do_setvfinfo).
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "netns/nl/message.h"
#include "netns/nl/vf_settings.h"

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
