// Locks and limits that the verbs share.
//
// Order, always: devices by name, sandbox, RDMA. Devices are locked all at once or not
// at all, so two calls never wait for each other.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cni/state/paths.h"
#include "netns/base/file_lock.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

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

}  // namespace railhead
