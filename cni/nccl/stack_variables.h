// What the stacks that read nothing but their environment are told: NVSHMEM, Gloo (and TensorPipe, which
// PyTorch's RPC is), Open MPI.
//
// A CDI spec's variables replace those that the pod's author has set, so each is opted for by the fabric.
// Sources: NVSHMEM src/modules/transport/common/env_defs.h and bootstrap/common/env_defs.h; PyTorch
// distributed's and Open MPI's documentation (btl_tcp_if_include, oob_tcp_if_include; PRRTE:
// prte_if_include).
// Threads: pure functions.
#pragma once

#include <vector>

#include "cni/nccl/nccl_config.h"

namespace railhead {

// Which NIC a PE uses is left to NVSHMEM, which takes the nearest of those it sees: the pod's own.
std::vector<HandoffLine> NvshmemVariables(const Handoff& handoff);

// Their traffic belongs on the cluster network; nothing where it is unknown.
std::vector<HandoffLine> GlooVariables(const Handoff& handoff);
// RDMA is UCX's; this is the run time's own traffic, and MPI's over TCP.
std::vector<HandoffLine> OpenMpiVariables(const Handoff& handoff);

}  // namespace railhead
