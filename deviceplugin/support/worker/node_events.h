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
#include <functional>
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

  // Where the kernel gives no device events (no CAP, odd sandbox) blind() says why, and the
  // caller has only its own clock. `open`: for tests.
  using OpenUevents = std::function<Result<Uevents>()>;
  static Result<NodeEvents> Open(OpenUevents open = &Uevents::Open);

  [[nodiscard]] const std::optional<Error>& blind() const { return blind_; }
  // Tries again to follow the hardware, if it is not followed.
  void TryHardware();

  // Watches the directories of these files, and no others any more. Directories that do not
  // exist yet are looked for at each call.
  void WatchFiles(const std::vector<std::string>& paths);
  // Returns at the first event, or when `until` has come.
  Seen Wait(Clock::time_point until);
  void Wake() const;

 private:
  NodeEvents(OpenUevents open, UniqueFd files, UniqueFd wake)
      : open_(std::move(open)), files_(std::move(files)), wake_(std::move(wake)) {}

  OpenUevents open_;
  std::optional<Uevents> hardware_;
  std::optional<Error> blind_;
  UniqueFd files_;
  UniqueFd wake_;
  std::map<std::string, int> watches_;  // directory -> inotify's number
};

}  // namespace railhead
