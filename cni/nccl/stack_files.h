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

// Variables of the stacks that read only their environment: NVSHMEM, Gloo (and TensorPipe, which is PyTorch's
// RPC), Open MPI.
//
// A CDI spec's variables override those of the pod, so the fabric must enable each stack.
// Sources: NVSHMEM src/modules/transport/common/env_defs.h and bootstrap/common/env_defs.h; PyTorch
// distributed's and Open MPI's documentation (btl_tcp_if_include, oob_tcp_if_include; PRRTE:
// prte_if_include).
// Threads: pure functions.

// NVSHMEM itself chooses the NIC of each PE: the nearest NIC that it sees. It sees only the pod's NICs.
std::vector<Variable> NvshmemVariables(const NcclConfig& config);

// Gloo's traffic uses the cluster network. Empty if its interface is unknown.
std::vector<Variable> GlooVariables(const NcclConfig& config);
// For the traffic of Open MPI's runtime, and MPI over TCP. RDMA uses UCX.
std::vector<Variable> OpenMpiVariables(const NcclConfig& config);

}  // namespace railhead::nccl
