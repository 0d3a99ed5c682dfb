// What Allocate wrote into directories that a reboot empties, made again.
//
// kubelet keeps its checkpoint over a reboot and does not allocate again; the allocation
// records are kept too. Before kubelet is served, and
// after every look at the node (VFs may be made after railheadd has started, and drivers bound
// again), every device with a record of its pool gets its
// device-info file and, with --use-cdi, its CDI spec again where they are missing or
// outdated.
// Threads: thread-safe. Errors: the first one, after all have been tried. Damaged records are
// passed over: they are the CNI plugin's to report, and the next Allocate replaces them.
#pragma once

#include <memory>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

Result<void> RestoreAllocated(const Root& root,
                              const std::vector<std::shared_ptr<const ResourcePool>>& pools);

}  // namespace railhead
