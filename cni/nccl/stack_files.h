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

namespace railhead::nccl {

// Tables are read where the NICs have different indices. kConflict when UCX would then take another GID
// on one of them: its hint has the table.
Result<std::string> UcxConf(const Handoff& handoff, const GidTableReader& table_of);

// The index that UCX finds by itself; nullopt: there is no GID of RoCE v2.
std::optional<int> UcxPicks(const std::vector<GidEntry>& table);

// What the stacks that read nothing but their environment are told: NVSHMEM, Gloo (and TensorPipe, which
// PyTorch's RPC is), Open MPI.
//
// A CDI spec's variables replace those that the pod's author has set, so each is opted for by the fabric.
// Sources: NVSHMEM src/modules/transport/common/env_defs.h and bootstrap/common/env_defs.h; PyTorch
// distributed's and Open MPI's documentation (btl_tcp_if_include, oob_tcp_if_include; PRRTE:
// prte_if_include).
// Threads: pure functions.

// Which NIC a PE uses is left to NVSHMEM, which takes the nearest of those it sees: the pod's own.
std::vector<HandoffLine> NvshmemVariables(const Handoff& handoff);

// Their traffic belongs on the cluster network; nothing where it is unknown.
std::vector<HandoffLine> GlooVariables(const Handoff& handoff);
// RDMA is UCX's; this is the run time's own traffic, and MPI's over TCP.
std::vector<HandoffLine> OpenMpiVariables(const Handoff& handoff);

}  // namespace railhead::nccl
