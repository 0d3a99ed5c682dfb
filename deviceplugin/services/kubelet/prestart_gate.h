// The gate before a container starts.
//
// kubelet calls PreStartContainer after the sandbox and its networks are up. A pod
// that asks for N devices but names fewer networks would start without its NICs, or
// with a handoff that lacks some, and NCCL would quietly use TCP. So in pools that
// require a handoff the container starts only when all devices of its request are in
// one and the same sandbox.
// The container runtime reads the devices' CDI specs next. One that somebody has removed or changed is
// written again here, or no container of the pod would ever start. Threads: pure functions over the file
// system.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// `ids`: what kubelet names, the devices of one container. Passes for pools without
// a required handoff. Errors: kConflict with the missing id, kInvalid for ids that
// are no devices of the pool.
Result<void> CheckAttached(const Root& root, const ResourcePool& pool, const std::vector<std::string>& ids);

// Writes missing and different CDI specs of the devices again; the ids of those. A device on which an ADD or
// DEL is at work is left alone.
Result<std::vector<std::string>> RepairCdiSpecs(const Root& root, const std::vector<std::string>& ids);

}  // namespace railhead
