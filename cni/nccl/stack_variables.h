// Variables of the stacks that read only their environment: NVSHMEM, Gloo (and TensorPipe, which is PyTorch's
// RPC), Open MPI.
//
// A CDI spec's variables override those of the pod, so the fabric must enable each stack.
// Sources: NVSHMEM src/modules/transport/common/env_defs.h and bootstrap/common/env_defs.h; PyTorch
// distributed's and Open MPI's documentation (btl_tcp_if_include, oob_tcp_if_include; PRRTE:
// prte_if_include).
// Threads: pure functions.
#pragma once

#include <vector>

#include "cni/nccl/nccl_config.h"

namespace railhead::nccl {

// NVSHMEM itself chooses the NIC of each PE: the nearest NIC that it sees. It sees only the pod's NICs.
std::vector<Variable> NvshmemVariables(const NcclConfig& config);

// Gloo's traffic uses the cluster network. Empty if its interface is unknown.
std::vector<Variable> GlooVariables(const NcclConfig& config);
// For the traffic of Open MPI's runtime, and MPI over TCP. RDMA uses UCX.
std::vector<Variable> OpenMpiVariables(const NcclConfig& config);

}  // namespace railhead::nccl
