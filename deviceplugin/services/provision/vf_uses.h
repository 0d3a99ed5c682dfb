// The users of a PF's VFs, which must not be removed or changed while in use.
//
//   - A pod: the journal of attachments has the device, or kubelet's checkpoint has it for a pod that still
//     exists. Allocation records do not count: they outlive pods and boots, and kubelet's checkpoint shows
//     which are valid.
//
//   - Another network namespace: a kernel driver is bound, and the host has no netdev of the VF.
//
//   - User space: a process has vfio's character device open.
//
//   - The host: address, default route, bond, bridge, VLAN (RefuseIfHostUses).
//
// Threads: as RouteApi. Errors: only where the host could not be asked. An unclear state of a device counts
// as use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/provision/pf_state.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::provision {

struct VfUse {
  int vf = 0;
  std::string device;
  std::string why;   // "is in pod team/train-0 (container 1f2e...) as rail0"
  std::string hint;  // how it becomes free
};

// Of the present VFs, in the order of their index.
Result<std::vector<VfUse>> FindVfUses(const Root& root, RouteApi& host, const PfActual& pf);

// The host's use of the PF itself, or the pod that has it. nullopt: none.
Result<std::optional<Error>> FindPfUse(const Root& root, RouteApi& host, const PfActual& pf);

}  // namespace railhead::provision
