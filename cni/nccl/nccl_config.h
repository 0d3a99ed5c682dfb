// All that a pod's stacks are told comes from one Handoff: nccl_conf.h, ucx_conf.h and stack_variables.h
// say it in the words of each.
// Threads: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cni/nccl/gid_selection.h"
#include "cni/nccl/nic.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

// A variable and its value.
using HandoffLine = std::pair<std::string, std::string>;

struct Handoff {
  std::vector<HandoffNic> nics;  // in the order in which they are named
  GidSelection gids;
  std::vector<HandoffLine> paths;  // what the NICs' places ask of NCCL: NcclView::Variables()
  std::string socket_ifname;       // cluster network's interface in the pod; empty: unknown
  std::vector<HandoffLine> env;    // the fabric's own lines for NCCL; they stand for those of the same name
};

// What all NICs have the same value of.
std::optional<int> SharedValue(const std::vector<HandoffNic>& nics, std::optional<int> HandoffNic::*value);

// "AF_INET" or "AF_INET6", as NCCL and NVSHMEM call them.
std::string FamilyName(const GidSearch& search);

// Where the handoff of a sandbox is kept: nccl.conf, and what other stacks or NCCL itself read besides,
// built from all its finished attachments.
// Threads: thread-safe for different sandboxes; callers hold the sandbox's lock. Errors: kIo.

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
