// NodeEvents: one thing to wait for, out of all that may change what this node offers.
//
//   hardware   the kernel's device events (netns/nl/uevents.h)
//   files      something happened in the directory of a watched file. A ConfigMap is
//              replaced by renaming a link beside the file, so all of the directory counts.
//   woken      Wake() was called
//
// Events only say that it is worth looking; what has changed, who looks finds.
// Ownership: owns its descriptors. Threads: one waits, any may call Wake().
// Errors: kIo when there are no descriptors.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/nl/uevents.h"

namespace railhead {

class NodeEvents {
 public:
  using Clock = std::chrono::steady_clock;

  struct Seen {
    bool hardware = false;
    bool files = false;
    bool woken = false;
    [[nodiscard]] bool Any() const { return hardware || files || woken; }
  };

  // Device events are nullopt where the kernel gives none (no CAP, odd sandbox): then the
  // caller has only its own clock.
  static Result<NodeEvents> Open();

  // Watches the directories of these files, and no others any more. Directories that do not
  // exist yet are looked for at each call.
  void WatchFiles(const std::vector<std::string>& paths);
  // Returns at the first event, or when `until` has come.
  Seen Wait(Clock::time_point until);
  void Wake() const;

 private:
  NodeEvents(std::optional<Uevents> hardware, UniqueFd files, UniqueFd wake)
      : hardware_(std::move(hardware)), files_(std::move(files)), wake_(std::move(wake)) {}

  std::optional<Uevents> hardware_;
  UniqueFd files_;
  UniqueFd wake_;
  std::map<std::string, int> watches_;  // directory -> inotify's number
};

}  // namespace railhead
