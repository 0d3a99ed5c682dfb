// Claiming devices for an ADD: locked, at home, and free of earlier attachments.
//
// kubelet may hand a VF out before the DEL of its last pod has finished: a claim waits
// for it, bounded, without holding its lock. An earlier attachment that was killed,
// or whose pod's namespace is gone, is finished on the spot.
// Threads: as Kernel; other processes are kept out by the devices' locks.
// Errors: kBusy when a device is still in use at the deadline, kExists when this very
// attachment is there already.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/devices.h"
#include "cni/protocol/plugin.h"
#include "cni/state/bind_protocol.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "cni/state/tenants.h"
#include "netns/base/addresses.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/state_folder.h"
#include "netns/kernel.h"
#include "netns/packet/conflict.h"

namespace railhead::attachment {

// Locks and limits that the verbs share.
//
// Order, always: devices by name, sandbox, RDMA. Devices are locked all at once or not
// at all, so two calls never wait for each other.

// The locks of some devices, held while the object lives.
class DeviceLocks {
 public:
  // kTimeout when another call holds one of them for longer than `limit`.
  static Result<DeviceLocks> Acquire(const Root& root, const std::set<std::string>& devices,
                                     std::chrono::milliseconds limit) {
    DeviceLocks locks;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (const auto& device : devices) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      locks.locks_.emplace(device,
                           RH_TRY_WRAP(FileLock::Acquire(paths::Lock(root, device),
                                                         std::max(left, std::chrono::milliseconds(0))),
                                       "waiting for device " + device));
    }
    return locks;
  }

  [[nodiscard]] std::vector<int> Fds() const {
    std::vector<int> fds;
    for (const auto& [device, lock] : locks_) fds.push_back(lock.Fd());
    return fds;
  }

 private:
  std::map<std::string, FileLock> locks_;
};

inline constexpr std::chrono::seconds kLockLimit{60};

// A namespace that dies gives its devices back from a work queue.
inline Deadline HomeDeadline() {
  static constexpr auto kLimit = std::chrono::seconds(30);
  return std::chrono::steady_clock::now() + kLimit;
}

// The locks of the devices, and of those that an earlier attachment had besides.
Result<DeviceLocks> ClaimDevices(const Root& root, Kernel& kernel, const Journal& journal,
                                 const CniRequest& request, const DeviceChoice& choice, Deadline deadline);

// Which answers to ADD's address probes are conflicts.
//
// A station with one or two addresses of a rail is a host: its address is in use. A station that claims more
// answers for whatever is asked: a pod that attacks, or a router's proxy ARP. If that were a conflict each
// time, one such pod would stop every ADD of its VLAN. So its claims are ignored and reported. Stations are
// told apart by the frame's source (AddressConflict::source), for each address family alone: a host has an
// address of each. Threads: a pure function.

inline constexpr std::size_t kMostAddressesOfStation = 2;
// For how long a claim counts.
inline constexpr std::chrono::hours kClaimCounts{1};
// Between two claims of an address by one station that confirm each other.
inline constexpr std::chrono::seconds kClaimConfirms{60};

struct ConflictVerdict {
  std::vector<AddressConflict> conflicts;
  std::vector<IpAddress> confirmed;  // of those: the same station claimed it at an earlier time, too
  std::vector<AddressConflict> ignored;
};

// `earlier`: of this boot; `now`: as RivalClaim::boottime.
ConflictVerdict JudgeConflicts(const std::vector<AddressConflict>& found,
                               const std::vector<RivalClaim>& earlier, std::chrono::milliseconds now);

// Asks railheadd which devices a pod's slots shall be: the one thing that only the daemon
// knows. Waits at most 10 s.
// Threads: waits for the daemon. Errors: kBusy (try again later) when no daemon answers,
// else what the daemon says.

Result<Bindings> BindSlots(const Root& root, const BindRequest& request);

// Whose MAC address it is that a network asks for.
//
// A pod with the MAC of somebody else on its rail takes his traffic: switches learn from what they see.
// Refused are the MACs of this node (all its interfaces, the VFs of its PFs), of the fabric's probing
// stations, those that routers share (VRRP, HSRP, GLBP), and that of whoever answers for the rail's gateway,
// as far as the host and railheadd know it. Where they do not, ADD has to see the gateway answer with another
// MAC. What pods believe says nothing: they can write what they like into their neighbour tables. Errors:
// kConflict with the owner. Threads: reads files, asks the host's rtnetlink.

// Of all devices of the plan that are given a MAC. `fabric`: the node's. Says in the plan whether the
// gateways have to be met.
Result<void> RefuseMacsOfOthers(const Root& root, RouteApi& host, const std::optional<Fabric>& fabric,
                                AttachPlan& plan);

}  // namespace railhead::attachment
