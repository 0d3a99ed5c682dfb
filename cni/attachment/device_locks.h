// DeviceLocks: the locks of an attachment's devices, and the limits that the CNI commands share.
//
// Order: devices by name, then sandbox, then RDMA. A call locks all of its devices or none, so two calls
// never wait for each other.
// Ownership: the object holds the locks while it lives. Threads: as FileLock, which other processes respect,
// too. Errors: kTimeout; those of the lock files.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cni/state/paths.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/kernel.h"

namespace railhead::attachment {

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

}  // namespace railhead::attachment
