// The folders of Railhead's own state, and their rule: no other user can plant anything there. One table
// lists the folders for all code that makes, checks, sweeps or describes the state.
//
// The tops of the state are /run/railhead, /run/cdi, /var/run/k8s.cni.cncf.io and /var/lib/railhead. A top
// and every folder below it must be a directory, not a link to one. Root or the user of this process must own
// it, and no other user may write into it. The folder that holds a top must not be open to all without the
// sticky bit.
// A user who could change a folder could put links and pipes where we write, read and remove files. A checked
// file could then become another thing later. The folders above, and links on the way to a top (as /var/run
// is one), are the system's. A path that is below no top is not checked.
// Errors: kInvalid, naming the folder, the fault and what to do. Threads: pure functions over files.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/base/unique_fd.h"

namespace railhead {

// Whose files a folder has: a file without its owner is a leftover.
enum class StateOwner : std::uint8_t {
  kNode,     // they stay as long as the state
  kDevice,   // or the slot, that a file is called after
  kSandbox,  // a folder for each
  kStore,    // the address store, which alone may touch them
};

struct StateFolder {
  std::string_view path;
  mode_t mode = 0755;
  mode_t file_mode = 0600;
  Sync sync = Sync::kVolatile;
  StateOwner owner = StateOwner::kNode;
  // Of our files, in a folder where others have theirs, too.
  std::string_view prefix;
  std::string_view suffix;
};

std::span<const StateFolder> StateFolders();

// Checks `folder` and the folders between it and its top, as far as they exist.
Result<void> CheckStateFolder(const Root& root, const std::string& folder);

// Checks all of StateFolders(), as far as they exist. Call it before anything is read or written.
Result<void> CheckStateFolders(const Root& root);

// mkdir -p with the checks, and with the mode that the table has for the folder or for its parent. Existing
// folders keep their mode.
Result<void> MakeStateFolder(const Root& root, const std::string& folder);

// The same for the folder that `file` lies in.
Result<void> MakeStateFolderOf(const Root& root, const std::string& file);

// Replaces `file` in one step (WriteAtomic), as the table says of its folder. Makes the folder if it does not
// exist.
Result<void> WriteStateFile(const Root& root, const std::string& file, std::string_view content);

// Takes an exclusive flock(2) on the open file `path`, as FileLock does.
Result<void> LockWithin(int fd, const std::string& path, std::chrono::milliseconds limit,
                        const std::atomic<bool>* stop = nullptr);

// An exclusive flock(2) on a file, held while the object lives.
//
// The kernel drops it when the last descriptor of the open file description is closed. A killed holder
// therefore never keeps it locked; a child that inherits the descriptor keeps it (see Fd()). Waiters get it
// in the order in which they came. As flock(2) knows no deadline, a timer's signal (SIGRTMAX - 1, whose
// handler does nothing and stays) ends the waiting.
// Lock files are never removed: removing one under a waiter would split the lock in two.

class FileLock {
 public:
  // Creates the file and its directories if needed. kTimeout when someone else still holds it after `limit`,
  // or soon after another thread has set `stop`. kBusy when the kernel gives no timer.
  static Result<FileLock> Acquire(const std::string& path, std::chrono::milliseconds limit,
                                  const std::atomic<bool>* stop = nullptr);

  // The locked descriptor, close-on-exec.
  [[nodiscard]] int Fd() const { return fd_.get(); }

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace railhead
