// Whose pod it is: what Kubernetes' runtimes say in CNI_ARGS.
// Threads: pure functions. All are "" where the runtime did not say.
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
