// The check before a container starts: are its devices attached?
//
// kubelet calls PreStartContainer after the sandbox and its networks are up. A pod that asks for N devices
// but names fewer networks would start without its NICs, or with an incomplete NCCL configuration. NCCL would
// then quietly use TCP. So in pools that require an NCCL configuration the container starts only when all
// devices of its request are in one and the same sandbox.
// Threads: pure function over the file system.
// Errors: kConflict with the missing id, kInvalid for ids that the pool does not have.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

// `ids`: the devices of one container, as kubelet names them. Succeeds for pools without a required NCCL
// configuration.
Result<void> CheckAttached(const Root& root, const resources::ResourcePool& pool,
                           const std::vector<std::string>& ids);

}  // namespace railhead::kubelet
