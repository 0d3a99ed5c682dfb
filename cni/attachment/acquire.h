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
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cni/attachment/devices.h"
#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/state_folder.h"
#include "netns/kernel.h"

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

}  // namespace railhead::attachment
