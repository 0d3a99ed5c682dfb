// BindSlots: asks railheadd at ADD for the devices of a pod's slots (bind_protocol.h).
//
// Threads: thread-safe; waits for the daemon. Errors: kBusy if no daemon answers; the error in the answer;
// kMalformed and kInvalid for other answers.
#pragma once

#include "cni/state/bind_protocol.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// Asks railheadd for the devices of a pod's slots, and waits at most 10 s. Returns the daemon's answer, or
// kBusy (try again later) if no daemon answers.
Result<Bindings> BindSlots(const Root& root, const BindRequest& request);

}  // namespace railhead
