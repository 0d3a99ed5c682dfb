// Asks railheadd which devices a pod's slots shall be: the one thing that only the daemon
// knows. Waits at most 10 s.
// Threads: waits for the daemon. Errors: kBusy (try again later) when no daemon answers,
// else what the daemon says.
#pragma once

#include "cni/state/bind_protocol.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

Result<Bindings> BindSlots(const Root& root, const BindRequest& request);

}  // namespace railhead
