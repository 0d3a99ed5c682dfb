// Where the handoff of a sandbox is kept: nccl.conf and, where NCCL needs one, a topology file, built
// from all its finished attachments.
// Threads: thread-safe for different sandboxes; callers hold the sandbox's lock. Errors: kIo.
#pragma once

#include <optional>
#include <string>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

inline constexpr const char* kNcclConfInContainer = "/etc/nccl.conf";
// Names in the sandbox's directory.
inline constexpr const char* kNcclConfName = "nccl.conf";
inline constexpr const char* kTopologyName = "topology.xml";

// In one step each; nccl.conf last. Without a topology file, none is left.
Result<void> WriteHandoff(const Root& root, const std::string& container, const std::string& nccl_conf,
                          const std::optional<std::string>& topology = std::nullopt);
Result<void> RemoveHandoff(const Root& root, const std::string& container);
[[nodiscard]] std::string HandoffPath(const Root& root, const std::string& container);
[[nodiscard]] std::string TopologyPath(const Root& root, const std::string& container);

// For "delivery": "mount": the file that Allocate mounted by the device's name.
// In place, since it may be mounted already; a runtime that found it missing
// made an (empty) directory of it, which is replaced.
Result<void> WriteDeviceHandoff(const Root& root, const std::string& bdf, const std::string& nccl_conf);
// Empties it: the mount of a container that still runs keeps its file.
Result<void> ClearDeviceHandoff(const Root& root, const std::string& bdf);
[[nodiscard]] std::string DeviceHandoffPath(const Root& root, const std::string& bdf);

}  // namespace railhead
