// The pod, from CNI_ARGS of Kubernetes' runtimes.
// Threads: pure functions. All are "" if the runtime did not set them.
#pragma once

#include <map>
#include <string>

namespace railhead {

using CniArgs = std::map<std::string, std::string>;

// "namespace/name"
std::string PodName(const CniArgs& args);
std::string PodNamespace(const CniArgs& args);
std::string PodUid(const CniArgs& args);

}  // namespace railhead
