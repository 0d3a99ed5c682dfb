// ucx.conf: the NCCL configuration as UCX reads it.
//
// UCX reads ucx.conf in its own prefix, in `$HOME`, in $UCX_CONFIG_DIR and in the working directory. Each
// file overrides the one before, and the process's environment overrides all of them
// (src/ucs/config/parser.c, ucs_config_parse_config_files). Lines are NAME=VALUE.
//
// UCX_NET_DEVICES names all devices that UCX may use, with ports, and the cluster network's interface.
// Without an index UCX takes the first RoCE v2 GID of an IPv4 address, otherwise of an IPv6 address
// (src/uct/ib/base/ib_device.c, uct_ib_device_select_gid). Since 1.21.0 a global IPv6 address comes before a
// link-local one; 1.15.0 to 1.20.1 take the first of both. A pod can have any of these releases. Threads:
// pure functions, except the callback that reads tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/nccl/gid_selection.h"
#include "cni/nccl/nccl_config.h"
#include "netns/base/result.h"
#include "netns/gid/gid_table.h"

namespace railhead::nccl {

// Reads tables if the NICs have different indices. kConflict when UCX would then take another GID on one of
// them; the hint has the table.
Result<std::string> UcxConf(const NcclConfig& config, const GidTableReader& table_of);

// The index that UCX 1.15.0 to 1.21 find without configuration; nullopt: they find different ones, or there
// is no RoCE v2 GID.
std::optional<int> UcxPicks(const std::vector<GidEntry>& table);

}  // namespace railhead::nccl
