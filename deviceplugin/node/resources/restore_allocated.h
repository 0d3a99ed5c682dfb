// Writes again what Allocate wrote into directories that a reboot empties.
//
// The checkpoint survives a reboot, so kubelet does not allocate again. The allocation records survive, too.
// This runs before kubelet is served, and after every discovery: VFs may be made, and drivers bound, after
// railheadd has started. Every device with a record of its pool gets its device-info file again if that is
// missing or outdated. With --use-cdi it gets its CDI spec again, too.
//
// Threads: thread-safe. Errors: the first one, after all have been tried. Damaged records are skipped: the
// CNI plugin reports them, and the next Allocate replaces them.
#pragma once

#include <memory>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::resources {

Result<void> RestoreAllocated(const Root& root,
                              const std::vector<std::shared_ptr<const ResourcePool>>& pools);

}  // namespace railhead::resources
