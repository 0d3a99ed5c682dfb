// All that a pod's stacks are told comes from one Handoff. NcclConf() says it in NCCL's words, stack_files.h
// in those of the others. Threads: values and pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/gid/gid_table.h"

namespace railhead::nccl {

// What the handoff knows of one NIC of a pod.
// Threads: values.

struct HandoffNic {
  std::string rdma_device;
  IpAddress address;  // the one whose GID is to be used
  int gid_index = 0;  // of that address, RoCE v2, as read in the pod
  std::optional<int> traffic_class;
  std::optional<int> service_level;
};

// How NCCL is told which GIDs to use: by index, one for all NICs of the process, or by what they
// look like.
//
// An index is best: it means the same to every release. Where the pod's NICs have their addresses at
// different indices, NCCL's own search (src/transport/net_ib, ncclUpdateGidIndex; since 2.21.5) can be
// told an address family, one CIDR range and a RoCE version. It takes the first GID that fits, so it
// is only used when that is the right one on every NIC: the search is done here on the tables as
// they are.
// Threads: pure functions, but for the reader of tables that is handed in.

// RoCE v2 GIDs of addresses in `range`.
struct GidSearch {
  IpPrefix range;

  bool operator==(const GidSearch&) const = default;
};

using GidSelection = std::variant<int, GidSearch>;

// The index that NCCL's search ends at.
int NcclPicks(const std::vector<GidEntry>& table, const GidSearch& search);

using GidTableReader = std::function<Result<std::vector<GidEntry>>(const HandoffNic& nic)>;

// For a pod with these NICs, of which there is at least one. Tables are read only when the indices
// differ. kConflict when no search finds the right GID on every NIC: its hint has the tables.
Result<GidSelection> SelectGids(const std::vector<HandoffNic>& nics, const GidTableReader& table_of);

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

// nccl.conf: what NCCL, RCCL and those that read their variables are told about the pod's NICs.
//
// NCCL's parser (src/misc/param.cc) takes NAME=VALUE lines, trims nothing, cuts
// a value at 1,023 bytes, lets the first occurrence win and never overrides the
// process's environment; "==" begins an exact list. Comments are known since 2.26.2 only, so
// there are none. Variables that a release does not know are of no consequence to it, so one text
// serves all: what each was first known to is in docs/operate/nccl.md.
// Threads: pure functions.

// kInvalid when a value is too long for NCCL.
Result<std::string> NcclConf(const Handoff& handoff);

// The value of a line; an exact list without its '='. nullopt: there is none.
std::optional<std::string> ValueIn(const std::string& conf, const std::string& variable);

// What a file of ours says of GIDs: an index, or the search that NCCL makes. nullopt: neither.
std::optional<GidSelection> GidsIn(const std::string& conf);

}  // namespace railhead::nccl
