// ucx.conf: what UCX is told about the pod's NICs.
//
// UCX reads ucx.conf in its own prefix, in $HOME, in $UCX_CONFIG_DIR and in the working directory, each
// over the one before, and the process's environment over all of them (src/ucs/config/parser.c,
// ucs_config_parse_config_files). Lines are NAME=VALUE.
//
// UCX_NET_DEVICES names what may be used at all, with ports and the cluster network's interface. Without
// an index UCX takes the first RoCE v2 GID of an IPv4 address, else of an IPv6 address
// (src/uct/ib/base/ib_device.c, uct_ib_device_select_gid).
// Threads: pure functions, but for the reader of tables that is handed in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/nccl/nccl_config.h"
#include "netns/base/result.h"
#include "netns/gid/gid_table.h"

namespace railhead {

// Tables are read where the NICs have different indices. kConflict when UCX would then take another GID
// on one of them: its hint has the table.
Result<std::string> UcxConf(const Handoff& handoff, const GidTableReader& table_of);

// The index that UCX finds by itself; nullopt: there is no GID of RoCE v2.
std::optional<int> UcxPicks(const std::vector<GidEntry>& table);

}  // namespace railhead
