// What must hold of a node whenever railheadd serves it, whatever was killed before.
//
//   - kubelet sees each device that it should once, as healthy as it is
//   - of what kubelet was given there are records, device-info files and CDI specs, whole and
//     with the right names
//   - every file of ours can be read, none is half written, no socket is without a listener
//   - no device and no slot is in two attachments
// Threads: the node's. Errors: kConflict: everything that does not hold, a line each.
#pragma once

#include "netns/base/result.h"
#include "tests/system/crash/daemon_node.h"

namespace railhead::crash {

Result<void> CheckNode(DaemonNode& node);

}  // namespace railhead::crash
