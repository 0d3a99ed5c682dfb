// Waits until the container runtime knows a device's CDI spec.
//
// A runtime keeps all specs in memory and reads them again when inotify reports a change in /run/cdi.
// CreateContainer does not read them: it fails for a spec that is newer than the runtime's last reading
// (cncf-tags/container-device-interface, pkg/cdi/cache.go, versions 0.7.2 to 1.1.0). So PreStartContainer
// renames the spec over itself, which makes an event, and waits until a process opens it. The runtime does so
// under the lock of its memory, and keeps that lock until it has read all specs.
// Threads: thread-safe. Errors: those of the spec's folder and of the device's lock.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

// Uses the first of `ids` that has a spec and that no ADD or DEL has locked. One reading covers all earlier
// specs, too. false: no process was seen to open it within `limit`, also where inotify has no instance left.
Result<bool> AwaitCdiReader(const Root& root, const std::vector<std::string>& ids,
                            std::chrono::milliseconds limit);

}  // namespace railhead::kubelet
