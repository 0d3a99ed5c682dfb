// The settings of all VFs of a PF, in one message.
//
// Source: net/core/rtnetlink.c (rtnl_fill_vfinfo), without statistics. If a driver asks its firmware for each
// VF, the answer takes as long as the firmware does.
// Threads: thread-safe. In the calling thread's network namespace. Needs no privilege.
#pragma once

#include <map>
#include <string>

#include "netns/base/result.h"
#include "netns/nl/vf_settings.h"

namespace railhead {

// By index. kNotFound: the PF does not exist.
Result<std::map<int, VfSettings>> ListVfs(const std::string& pf);

}  // namespace railhead
