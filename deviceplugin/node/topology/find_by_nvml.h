// The one question that only NVIDIA's library answers: where a UUID is.
//
// For ids of MIG slices (/proc does not list them) and of GPUs that the driver has not initialised. The
// program railhead-nvml asks, since a static program can load no library. Initialising the library can take
// seconds on a node whose driver is not kept loaded (nvidia-persistenced). Never ask where kubelet waits.
// Threads: thread-safe; waits for a child.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "netns/base/root.h"
#include "netns/sys/pci_address.h"

namespace railhead::topology {

// The program: beside another, whose path is given, or in /usr/libexec/railhead. nullopt: in neither.
std::optional<std::string> FindNvmlProgram(const Root& root, const std::string& beside);

// "GPU-..." or "MIG-...". nullopt: no program, no library, no driver, no such device, no answer in time.
std::optional<PciAddress> FindByNvml(const std::string& uuid, const std::string& program,
                                     std::chrono::milliseconds limit = std::chrono::seconds(30));

}  // namespace railhead::topology
