// The handoff: what NCCL is told about the pod's NICs, as /etc/nccl.conf.
//
// NCCL's parser (src/misc/param.cc) takes NAME=VALUE lines, trims nothing, cuts
// a value at 1,023 bytes, lets the first occurrence win and never overrides the
// process's environment; "==" begins an exact list. One file per sandbox, built
// from all its finished attachments.
// Threads: thread-safe for different sandboxes; callers hold the sandbox's lock.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

inline constexpr const char* kNcclConfInContainer = "/etc/nccl.conf";

struct HandoffNic {
  std::string rdma_device;
  int gid_index = 0;
  std::optional<int> traffic_class;
};

struct Handoff {
  std::vector<HandoffNic> nics;  // in the order that NCCL_IB_HCA names them
  std::string socket_ifname;     // cluster network's interface in the pod; empty: unknown
  std::vector<std::pair<std::string, std::string>> env;
};

// The text of nccl.conf. kConflict when the NICs disagree on the GID index, of
// which NCCL has one per process; kInvalid when a value is too long for NCCL.
Result<std::string> NcclConf(const Handoff& handoff);

Result<void> WriteHandoff(const Root& root, const std::string& container, const std::string& nccl_conf);
Result<void> RemoveHandoff(const Root& root, const std::string& container);
[[nodiscard]] std::string HandoffPath(const Root& root, const std::string& container);

// For "delivery": "mount": the file that Allocate mounted by the device's name.
// In place, since it may be mounted already; a runtime that found it missing
// made an (empty) directory of it, which is replaced.
Result<void> WriteDeviceHandoff(const Root& root, const std::string& bdf, const std::string& nccl_conf);
// Empties it: the mount of a container that still runs keeps its file.
Result<void> ClearDeviceHandoff(const Root& root, const std::string& bdf);
[[nodiscard]] std::string DeviceHandoffPath(const Root& root, const std::string& bdf);

}  // namespace railhead
