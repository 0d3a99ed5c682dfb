// Preferred allocation: which devices of a pool to give out next.
//
// In this order of importance:
//   1. known devices before ids that the pool does not know;
//   2. one device on each rail before a second on any, so that a pod that asks for N gets
//      N rails (least sum of squares of the numbers per rail);
//   3. devices on the host before those that the last pod still has: ADD waits for these;
//   4. every accelerator of the pod with a NIC as near as can be, then every NIC near to one;
//   5. few NUMA nodes; 6. the rails' order; 7. low VF indices, on each rail the lowest that is
//      free, so that all nodes pick alike and a job's pods have the same VFs everywhere (NCCL's
//      rings then see one order).
// The choice is the best by this order, not an approximation, for pools of up to 12 rails:
// 2 leaves open only which of the rails give one more, and all possibilities are tried.
// Threads: pure function.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/sys/pci_path.h"

namespace railhead::resources {

// What is known beside the pool. All of it may be missing.
struct PreferHints {
  std::set<std::string> still_attached;  // ids of devices that the last pod still has
  // By PF: how far it is from each accelerator of the pod, always in the same order.
  std::map<PciAddress, std::vector<PciPath>> paths;
};

// At most `size` ids out of `available`, all of `must_include` first (those it knows
// or not: kubelet asked for them). Ids that the pool does not know are chosen last
// rather than refused: an error here would fail the pod. Fewer than `size` only when
// there are fewer.
std::vector<std::string> Prefer(const ResourcePool& pool, const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, int size,
                                const PreferHints& hints = {});

}  // namespace railhead::resources
