// Locks and limits that ADD and DEL share.
#pragma once

#include <chrono>
#include <string>

#include "cni/state/paths.h"
#include "netns/base/file_lock.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

inline Result<FileLock> LockDevice(const Root& root, const std::string& device) {
  static constexpr auto kLimit = std::chrono::seconds(60);
  return RH_TRY_WRAP(FileLock::Acquire(paths::Lock(root, device), kLimit), "waiting for device " + device);
}

// A namespace that dies gives its devices back from a work queue.
inline Deadline HomeDeadline() {
  static constexpr auto kLimit = std::chrono::seconds(30);
  return std::chrono::steady_clock::now() + kLimit;
}

}  // namespace railhead
