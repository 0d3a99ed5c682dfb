// Which part of the project may include which: the direction of dependencies.
//
// netns/base <- netns/{sys,nl,ns,gid,packet} <- cni/protocol <- cni/fabric <- cni/state
// <- cni/nccl <- cni/plugin; ipam stands beside cni/state; deviceplugin may use all of these,
// nothing uses it. gRPC and its kin only in deviceplugin, libnl only below netns.
// Threads: pure functions over the file system.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace railhead::testing {

// Why `file` (path from the repository's root) may not have this line; nullopt: it
// may, or the line is no include.
std::optional<std::string> IncludeViolation(const std::string& file, const std::string& line);

struct IncludeCheck {
  int files = 0;
  int includes = 0;
  std::vector<std::string> violations;  // "FILE:LINE: why"
};

// All C++ sources below `root`'s parts (netns, cni, ipam, deviceplugin, bench, tests).
IncludeCheck CheckIncludes(const std::string& root);

}  // namespace railhead::testing
