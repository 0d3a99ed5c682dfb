// Devices and slots that kubelet has allocated to a pod, and that no pool has any more.
//
// A VF was removed, a PF unplugged, a driver unbound. kubelet keeps the allocation until the pod ends, and
// takes its capacity from ListAndWatch. So they stay in the list, unhealthy.
//
// Source: kubelet's checkpoint (cni/state/kubelet_checkpoint.h), which keeps ended pods until its next
// allocation. A pod's directory goes with the pod. Threads: thread-safe. Errors: none; without a readable
// checkpoint nothing is known.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/root.h"

namespace railhead::resources {

// By resource. Resources without a pool are left out: they were withdrawn.
std::map<std::string, std::set<std::string>> FindAllocatedAndLost(
    const Root& root, const std::vector<std::shared_ptr<const ResourcePool>>& pools);

}  // namespace railhead::resources
