// Preferred allocation: which devices of a pool to give out next.
//
// One device on each rail before a second on any, so that a pod that asks for N gets
// N rails; on each rail the lowest free VF index, so that all nodes pick alike and a
// job's pods have the same VFs everywhere (NCCL's rings then see one order). Where
// that leaves a choice, which is only which rails to leave out: first those NUMA
// nodes that the choice so far is on already, then the rails' order.
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/pools/resource_pool.h"

namespace railhead {

// At most `size` ids out of `available`, all of `must_include` first (those it knows
// or not: kubelet asked for them). Ids that the pool does not know are chosen last
// rather than refused: an error here would fail the pod. Fewer than `size` only when
// there are fewer.
std::vector<std::string> Prefer(const ResourcePool& pool, const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, int size);

}  // namespace railhead
