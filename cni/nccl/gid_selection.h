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
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "cni/nccl/nic_config.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/gid/gid_table.h"

namespace railhead::nccl {

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

}  // namespace railhead::nccl
