// How NCCL is told which GIDs to use: by index, one for all NICs of the process, or by what they
// look like.
//
// An index is best: it means the same to every release. Where the pod's NICs have their addresses at
// different indices, NCCL's own search (src/transport/net_ib, ncclUpdateGidIndex; since 2.21.5) can be
// told an address family, one CIDR range and a RoCE version. It takes the first GID that fits, so it
// is only used when that is the right one on every NIC: the search is done here on the tables as
// they are.
// Threads: pure functions, but for the reader of tables that is handed in.
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "cni/nccl/nic.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/gid/gid_table.h"

namespace railhead {

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

}  // namespace railhead
