// Repairs the CDI specs that the container runtime reads after PreStartContainer. Without its specs no
// container of the pod would ever start.
// Threads: pure function over the file system. Errors: those of the spec's folder and of the device's lock.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

// Writes missing and different CDI specs of the devices again, and returns the ids of those. It skips a
// device that an ADD or DEL has locked.
Result<std::vector<std::string>> RepairCdiSpecs(const Root& root, const std::vector<std::string>& ids);

}  // namespace railhead::kubelet
