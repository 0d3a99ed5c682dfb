// What a PF says of all its VFs, in one message.
//
// Source: net/core/rtnetlink.c (rtnl_fill_vfinfo), without statistics. Where a driver asks its firmware
// for each VF this takes as long as that does.
// Threads: thread-safe. In the calling thread's network namespace. Needs no privilege.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/nl/link.h"

namespace railhead {

// By index. kNotFound: there is no such PF.
Result<std::vector<VfState>> ListVfs(const std::string& pf);

}  // namespace railhead
