// NodeEvents: waits for all events that may change this node's advertisement.
//
//   hardware   the kernel's device events (netns/nl/uevents.h)
//   files      something happened in the directory of a watched file. A ConfigMap is
//              replaced by renaming a link beside the file, so all of the directory counts.
//   woken      the worker was woken
//
// An event is only a reason for a discovery, which finds the change.
// Ownership: owns its descriptors. Threads: one.
// Errors: kIo without free descriptors.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/support/service/worker.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/nl/uevents.h"

namespace railhead::discovery {

class NodeEvents {
 public:
  using Clock = std::chrono::steady_clock;

  struct Seen {
    bool hardware = false;
    bool files = false;
    bool woken = false;
    [[nodiscard]] bool Any() const { return hardware || files || woken; }
  };

  // If the kernel sends no device events (no CAP, odd sandbox), uevents_error() says why, and the caller must
  // poll. `open`: for tests.
  using OpenUevents = std::function<Result<Uevents>()>;
  static Result<NodeEvents> Open(OpenUevents open = &Uevents::Open);

  [[nodiscard]] const std::optional<Error>& uevents_error() const { return uevents_error_; }
  // Tries again to get device events, if they are missing.
  void ConnectUevents();

  // Watches the directories of these files, and no longer any others. Each call looks again for directories
  // that did not exist before.
  void WatchFiles(const std::vector<std::string>& paths);
  // Returns at the first event, or when `until` has come.
  Seen Wait(Worker& worker, Clock::time_point until);

 private:
  NodeEvents(OpenUevents open, UniqueFd files) : open_(std::move(open)), files_(std::move(files)) {}

  OpenUevents open_;
  std::optional<Uevents> hardware_;
  std::optional<Error> uevents_error_;
  UniqueFd files_;
  std::map<std::string, int> watches_;  // directory -> inotify's number
};

}  // namespace railhead::discovery
