// The one question that only NVIDIA's library answers: where a UUID is.
//
// For ids of MIG slices (/proc does not list them) and of GPUs that the driver has not
// initialised. The library is loaded for the call and let go after it: it keeps tens of
// megabytes and is no dependency of ours. Initialising it can take a second on a node
// whose driver is not kept loaded (nvidia-persistenced): never call it where kubelet waits.
// Source: nvml.h of the CUDA toolkit; only functions whose ABI has been stable since R440.
// Threads: thread-safe (NVML counts initialisations).
#pragma once

#include <optional>
#include <string>

#include "netns/sys/pci_address.h"

namespace railhead {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// "GPU-..." or "MIG-...". nullopt: no library, no driver, no such device.
std::optional<PciAddress> FindByNvml(const std::string& uuid, const std::string& library = kNvmlLibrary);

}  // namespace railhead
