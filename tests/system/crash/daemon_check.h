// What must hold on a node while railheadd serves it, whatever was killed before.
//
//   - The stand-in of kubelet sees each expected device once, with its true health.
//   - For kubelet's allocations there are records, device-info files and CDI specs, whole and with the
//     right names.
//   - Every file of ours can be read, none is half written, and every socket has a listener.
//   - Neither a device nor a slot is in two attachments.
//
// Threads: the node's. Errors: kConflict lists everything that does not hold, a line each.
#pragma once

#include "netns/base/result.h"
#include "tests/system/crash/daemon_node.h"

namespace railhead::crash {

Result<void> CheckNode(DaemonNode& node);

}  // namespace railhead::crash
