// The files of a sandbox's NCCL configuration: nccl.conf, and further files of NCCL and other stacks. They
// are made from all finished attachments of the sandbox. Threads: thread-safe for different sandboxes;
// callers hold the sandbox's lock. Errors: kIo.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::nccl {

inline constexpr const char* kNcclConfInContainer = "/etc/nccl.conf";
inline constexpr const char* kRcclConfInContainer = "/etc/rccl.conf";
inline constexpr const char* kUcxDirectoryInContainer = "/etc/ucx";
inline constexpr const char* kUcxConfInContainer = "/etc/ucx/ucx.conf";

// Names in the sandbox's directory.
inline constexpr const char* kNcclConfName = "nccl.conf";
inline constexpr const char* kTopologyName = "topology.xml";
inline constexpr const char* kUcxConfName = "ucx.conf";

struct NcclConfigFile {
  std::string name;                       // one of the names above
  std::vector<std::string> in_container;  // its paths in containers
  std::string text;
};

// Replaces each file atomically, nccl.conf last. Removes files that are not in `files`. Containers may read
// all of them, also by SELinux (netns/sys/selinux.h).
Result<void> WriteNcclConfig(const Root& root, const std::string& container,
                             const std::vector<NcclConfigFile>& files);
Result<void> RemoveNcclConfig(const Root& root, const std::string& container);
[[nodiscard]] std::string NcclConfigPath(const Root& root, const std::string& container,
                                         const std::string& name = kNcclConfName);

// For "deviceNodes": "mount": the device's own file, which Allocate mounted. Writes it in place, since it may
// be mounted already. If it was missing, a runtime made an empty folder with its path, which this replaces.
Result<void> WriteDeviceNcclConfig(const Root& root, const std::string& bdf, const std::string& nccl_conf);
// Empties the file. It is not removed: a running container may still mount it.
Result<void> ClearDeviceNcclConfig(const Root& root, const std::string& bdf);
[[nodiscard]] std::string DeviceNcclConfigPath(const Root& root, const std::string& bdf);

}  // namespace railhead::nccl
