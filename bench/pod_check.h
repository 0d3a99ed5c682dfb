// Whether an ADD really gave the pod what it promises, and a DEL took it away again:
// a contender that does less than the others must not win.
// Threads: any; asks the kernel.
#pragma once

#include <string>

#include "bench/contender.h"
#include "netns/base/result.h"

namespace railhead::bench {

// Waits for carrier. kConflict, saying what is missing: MTU, exactly this IPv4
// address, a rule for it whose table reaches kRoute by kGateway.
Result<void> CheckAttached(const Contender& contender);

// The device is on the host under its own name; of the pod's interface, and of its
// rules, nothing is left.
Result<void> CheckDetached(const Contender& contender);

}  // namespace railhead::bench
