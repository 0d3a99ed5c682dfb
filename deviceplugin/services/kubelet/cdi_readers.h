// Waits until the container runtime knows a device's CDI spec.
//
// A runtime keeps all specs in memory and reads them again when inotify tells it of a change in /run/cdi.
// CreateContainer does not read them: it fails for a spec that is newer than the runtime's last reading
// (cncf-tags/container-device-interface, pkg/cdi/cache.go, versions 0.7.2 to 1.1.0). So PreStartContainer
// renames the spec over itself, which makes an event, and waits until somebody opens it. The runtime does so
// under the lock of its memory, and keeps that lock until it has read all specs. Threads: thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// Of the first of `ids` that has a spec and that no ADD or DEL is at work on: one reading covers all specs
// that were there before it. false: nobody opened it within `limit`.
Result<bool> AwaitCdiReader(const Root& root, const std::vector<std::string>& ids,
                            std::chrono::milliseconds limit);

}  // namespace railhead
