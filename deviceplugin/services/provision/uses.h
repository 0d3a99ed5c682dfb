// Who uses a PF's VFs, so that they must not be taken away or changed.
//
//   - a pod: the journal of attachments has the device, or kubelet's checkpoint has it for
//     a pod that still is. Allocation records are not asked: they outlive pods and boots,
//     kubelet's checkpoint says which of them are of use.
//   - another network namespace: a kernel driver is bound, and the host has no netdev of it
//   - user space: vfio's character device of it is open in some process
//   - the host: address, default route, bond, bridge, VLAN (RefuseIfHostUses)
//
// Threads: as RouteApi. Errors: only where the host could not be asked; whatever is
// unclear about a device counts as use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/provision/pf_state.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

struct VfUse {
  int vf = 0;
  std::string device;
  std::string why;   // "is in pod team/train-0 (container 1f2e...) as rail0"
  std::string hint;  // how it becomes free
};

// Of the VFs that are there; in the order of their index.
Result<std::vector<VfUse>> FindVfUses(const Root& root, RouteApi& host, const PfActual& pf);

// What the host does with the PF itself, or which pod has it; nullopt: nothing.
Result<std::optional<Error>> FindPfUse(const Root& root, RouteApi& host, const PfActual& pf);

}  // namespace railhead
