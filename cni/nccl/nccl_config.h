// The NCCL configuration of a pod. NcclConf() writes it as nccl.conf, and stack_files.h as the files and
// variables of other stacks. Threads: values and pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/gid/gid_table.h"

namespace railhead::nccl {

// The NCCL configuration of one NIC of a pod.
// Threads: values.

struct NicConfig {
  std::string rdma_device;
  IpAddress address;  // NCCL uses the GID of this address
  int gid_index = 0;  // of that address, RoCE v2, as read in the pod
  std::optional<int> traffic_class;
  std::optional<int> service_level;
};

// Selects the GIDs that NCCL uses: by an index, which is the same for all NICs of the process, or by a
// search.
//
// An index is best: it means the same to every release. If the pod's NICs have their addresses at different
// indices, NCCL can search since 2.21.5 (src/transport/net_ib, ncclUpdateGidIndex). It searches by address
// family, one CIDR range and RoCE version, and takes the first GID that fits. So the search is used only if
// it finds the right GID on every NIC: this code runs the same search on the present tables. 2.21.5 to 2.25.1
// end with an error where the search for an IPv6 address begins at an empty slot 0: they ask the kernel for
// that slot's RoCE version, which has none (NCCL issues 1538 and 1573; tolerated since 2.26.2). Threads: pure
// functions, except the callback that reads tables.

// RoCE v2 GIDs of addresses in `range`.
struct GidSearch {
  IpPrefix range;

  bool operator==(const GidSearch&) const = default;
};

using GidSelection = std::variant<int, GidSearch>;

// The index that the search of every release since 2.21.5 finds; nullopt: some of them fail.
std::optional<int> NcclPicks(const std::vector<GidEntry>& table, const GidSearch& search);

using GidTableReader = std::function<Result<std::vector<GidEntry>>(const NicConfig& nic)>;

// For a pod with these NICs, at least one. Reads tables only if the indices differ. kConflict when no search
// finds the right GID on every NIC; the hint has the tables.
Result<GidSelection> SelectGids(const std::vector<NicConfig>& nics, const GidTableReader& table_of);

// A variable and its value.
using Variable = std::pair<std::string, std::string>;

struct NcclConfig {
  std::vector<NicConfig> nics;  // in the order of NCCL_IB_HCA
  GidSelection gids;
  std::vector<Variable> hardware;  // variables that the NICs' places and kinds require
  std::string socket_ifname;       // cluster network's interface in the pod; empty: unknown
  std::vector<Variable> env;       // the fabric's own lines, which replace those of the same name
};

// The value if all NICs have the same, otherwise nullopt.
std::optional<int> SharedValue(const std::vector<NicConfig>& nics, std::optional<int> NicConfig::*value);

// "AF_INET" or "AF_INET6", as NCCL and NVSHMEM call them.
std::string FamilyName(const GidSearch& search);

// The files of a sandbox's NCCL configuration: nccl.conf, and further files of NCCL and other stacks. They
// are made from all finished attachments of the sandbox. Threads: thread-safe for different sandboxes;
// callers hold the sandbox's lock. Errors: kIo.

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

// nccl.conf: the NCCL configuration for NCCL, RCCL and programs that read their variables.
//
// NCCL's parser (src/misc/param.cc) reads NAME=VALUE lines, trims nothing and cuts a value at 1,023 bytes.
// The first line of a name wins, and never overrides the process's environment. "==" begins an exact list.
// Only releases since 2.26.2 read comments, so the file has none. A release ignores variables that it does
// not know, so one text serves all releases. docs/operate/nccl.md lists the first release of each variable.
// Threads: pure functions.

// kInvalid when a value is too long for NCCL.
Result<std::string> NcclConf(const NcclConfig& config);

// The value of a line; of an exact list without its '='. nullopt: no such line.
std::optional<std::string> ValueIn(const std::string& conf, const std::string& variable);

// The GID selection in an nccl.conf that Railhead wrote: an index or a search. nullopt: neither.
std::optional<GidSelection> GidsIn(const std::string& conf);

}  // namespace railhead::nccl
