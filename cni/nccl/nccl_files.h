// Where the handoff of a sandbox is kept: nccl.conf, and what other stacks or NCCL itself read besides,
// built from all its finished attachments.
// Threads: thread-safe for different sandboxes; callers hold the sandbox's lock. Errors: kIo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

inline constexpr const char* kNcclConfInContainer = "/etc/nccl.conf";
inline constexpr const char* kRcclConfInContainer = "/etc/rccl.conf";
inline constexpr const char* kUcxDirectoryInContainer = "/etc/ucx";
inline constexpr const char* kUcxConfInContainer = "/etc/ucx/ucx.conf";

// Names in the sandbox's directory.
inline constexpr const char* kNcclConfName = "nccl.conf";
inline constexpr const char* kTopologyName = "topology.xml";
inline constexpr const char* kUcxConfName = "ucx.conf";

// Whether it is one of them.
[[nodiscard]] bool IsHandoffName(std::string_view name);

struct HandoffFile {
  std::string name;                       // one of the above
  std::vector<std::string> in_container;  // where containers see it
  std::string text;
};

// Each in one step; nccl.conf last. Of the others, those that are not among `files` are removed.
Result<void> WriteHandoff(const Root& root, const std::string& container,
                          const std::vector<HandoffFile>& files);
Result<void> RemoveHandoff(const Root& root, const std::string& container);
[[nodiscard]] std::string HandoffPath(const Root& root, const std::string& container,
                                      const std::string& name = kNcclConfName);

// For "delivery": "mount": the file that Allocate mounted by the device's name.
// In place, since it may be mounted already; a runtime that found it missing
// made an (empty) directory of it, which is replaced.
Result<void> WriteDeviceHandoff(const Root& root, const std::string& bdf, const std::string& nccl_conf);
// Empties it: the mount of a container that still runs keeps its file.
Result<void> ClearDeviceHandoff(const Root& root, const std::string& bdf);
[[nodiscard]] std::string DeviceHandoffPath(const Root& root, const std::string& bdf);

}  // namespace railhead
