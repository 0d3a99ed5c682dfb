// Preferred allocation: which devices of a pool to give out next.
//
// In this order of importance:
//   1. Known devices come before ids that the pool does not know.
//   2. Every rail gives one device before any gives a second: a pod that asks for N gets N rails. (The order
//      minimises the sum of squares of the numbers per rail.)
//   3. Devices on the host come before those that the last pod still has: ADD waits for these.
//   4. Every accelerator of the pod gets a NIC as near as can be. Then every NIC is near to one.
//   5. Few NUMA nodes.
//   6. The rails' order.
//   7. Low VF indices, on each rail the lowest free one. So all nodes choose alike, and a job's pods have the
//      same VFs everywhere (NCCL's rings then see one order).
// For pools of up to 12 rails the choice is the best by this order, not an approximation. After rule 2 only
// the rails that give one more are open, and all possibilities are tried. Threads: pure function.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/sys/pci_path.h"

namespace railhead::resources {

// Facts besides the pool. Each may be missing.
struct PreferHints {
  std::set<std::string> still_attached;  // ids of devices that the last pod still has
  // By PF: how far it is from each accelerator of the pod, always in the same order.
  std::map<PciAddress, std::vector<PciPath>> paths;
};

// At most `size` ids out of `available`. All of `must_include` come first, known or not, since kubelet asked
// for them. Ids that the pool does not know are chosen last instead of refused: an error here would fail the
// pod. Fewer than `size` only if there are fewer.
std::vector<std::string> Prefer(const ResourcePool& pool, const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, int size,
                                const PreferHints& hints = {});

}  // namespace railhead::resources
