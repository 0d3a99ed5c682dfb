// How long others wait for the kernel's lock of network settings (RTNL) while /metrics/nics is scraped.
//
// Measured is the smallest change that there is, another alias of the loopback device: RTM_SETLINK, done
// under RTNL as each move, address and route of a pod is. RTNL is one mutex for all namespaces; where a
// kernel splits it (CONFIG_DEBUG_NET_SMALL_RTNL), the part that belongs to the namespace of the PFs is
// contended, so the device is of that one. Beside it a process does by turns nothing; computes, which takes a
// processor and no lock; lists the links, as `ip link` does; scrapes. All back to back. The alias is taken
// away in the end. Errors: what the measured code says.
#pragma once

#include <functional>
#include <string>

#include "bench/record.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::bench {

struct RtnlSetting {
  std::string group;
  int rounds = 0;
  std::function<Result<void>()> scrape;  // one; runs in a process that is forked from this one
};

Result<void> MeasureRtnl(Kernel& kernel, const RtnlSetting& setting, Record* record);

}  // namespace railhead::bench
