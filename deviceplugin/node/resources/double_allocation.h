// Devices that a pod has under the name of another resource than the one that they are in now.
//
// A changed configuration can move a device from one resource to another, and kubelet keeps its
// books by resource: it would give the device out once more. It is told as unhealthy instead for
// as long as the pod is there.
// Source: kubelet's checkpoint (cni/state/checkpoint.h), which keeps pods that have ended until its next
// allocation; a pod's directory goes with the pod.
// Threads: thread-safe. Errors: none; without a checkpoint that can be read nothing is known.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/root.h"

namespace railhead {

// Ids of devices, of slots none.
std::set<std::string> GivenUnderOtherNames(const Root& root,
                                           const std::vector<std::shared_ptr<const ResourcePool>>& pools);

}  // namespace railhead
