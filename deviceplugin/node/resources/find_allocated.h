// Devices allocated to a pod under a different resource name than their current one.
//
// A changed configuration can move a device from one resource to another. Since kubelet counts by resource,
// it would allocate the device again. So the device is reported unhealthy as long as the pod is there.
//
// Source: kubelet's checkpoint (cni/state/kubelet_checkpoint.h), which keeps ended pods until its next
// allocation. A pod's directory goes with the pod. Threads: thread-safe. Errors: none; without a readable
// checkpoint nothing is known.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/root.h"

namespace railhead::resources {

// Ids of devices, never of slots.
std::set<std::string> FindAllocatedUnderOtherNames(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools);

}  // namespace railhead::resources
