// Acquires the devices of an ADD: locks them, and makes sure that they are on the host and free.
//
// kubelet may allocate a VF before the DEL of its last pod has finished. Then ADD waits for that DEL until a
// deadline, without holding the lock. ADD itself releases an earlier attachment whose ADD was killed, whose
// pod's namespace is gone, or whose sandbox the runtime has replaced by this one.
// Threads: as Kernel; other processes are kept out by the devices' locks.
// Errors: kBusy when a device is still in use at the deadline, kExists when the same attachment exists.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cni/attachment/devices.h"
#include "cni/protocol/cni_request.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Locks and limits that the CNI commands share.
//
// Order: devices by name, then sandbox, then RDMA. A call locks all of its devices or none, so two calls
// never wait for each other.

// The locks of some devices, held while the object lives.
class DeviceLocks {
 public:
  // kTimeout when another call holds one of them for longer than `limit`, or at `stop`.
  static Result<DeviceLocks> Acquire(const Root& root, const std::set<std::string>& devices,
                                     std::chrono::milliseconds limit,
                                     const std::atomic<bool>* stop = nullptr) {
    DeviceLocks locks;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (const auto& device : devices) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      locks.locks_.emplace(device,
                           RH_TRY_WRAP(FileLock::Acquire(paths::Lock(root, device),
                                                         std::max(left, std::chrono::milliseconds(0)), stop),
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

// The kernel returns the devices of a deleted namespace from a work queue.
inline Deadline RestoreDeadline() {
  static constexpr auto kLimit = std::chrono::seconds(30);
  return std::chrono::steady_clock::now() + kLimit;
}

// Returns the locks of the devices, and of the further devices of stale attachments that it released.
Result<DeviceLocks> AcquireDevices(const Root& root, Kernel& kernel, const Journal& journal,
                                   const CniRequest& request, const DeviceChoice& choice, Deadline deadline);

}  // namespace railhead::attachment
