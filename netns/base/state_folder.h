// Folders of Railhead's own state: one table of them, which whoever makes, checks, sweeps or describes the
// state reads; and their rule, that nobody else can plant anything there.
//
// The tops of the state (/run/railhead, /run/cdi, /var/run/k8s.cni.cncf.io, /var/lib/railhead) and every
// folder below them have to be directories, not links to one, that root or who runs this owns and that
// nobody else may write into; the folder that holds a top must not be open to all without the sticky bit.
// Whoever could change a folder could put links and pipes where files are written, read and removed, and
// what was checked once would be another thing later. What lies above, and links on the way to it (as
// /var/run is one), is the system's. A path that is below no top is not checked.
// Errors: kInvalid, naming the folder, what is wrong and what to do. Threads: pure functions over files.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

// Whose files a folder has: a file without its owner is a leftover.
enum class StateOwner : std::uint8_t {
  kNode,     // they stay as long as the state
  kDevice,   // or the slot, that a file is called after
  kSandbox,  // a folder for each
  kAttachment,
  kStore,  // the address store, which alone may touch them
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

// `folder` and what lies between it and its top, as far as it is there.
Result<void> CheckStateFolder(const Root& root, const std::string& folder);

// All of StateFolders(), as far as they are there: before anything is read or written.
Result<void> CheckStateFolders(const Root& root);

// mkdir -p, with the mode that the table has for it or for what it is in, and checked. Existing folders keep
// their mode.
Result<void> MakeStateFolder(const Root& root, const std::string& folder);

// The same for the folder that `file` lies in.
Result<void> MakeStateFolderOf(const Root& root, const std::string& file);

// Replaces `file` in one step (WriteAtomic), as the table says of its folder, which is made if it is not
// there.
Result<void> WriteStateFile(const Root& root, const std::string& file, std::string_view content);

// An exclusive flock(2) on a file, held while the object lives.
//
// The kernel drops it when the last descriptor of the open file description is
// closed, so a killed holder never leaves it locked; a child that inherits the
// descriptor keeps it (see Fd()). Waiters get it in the order in which they came. As flock(2) knows no
// deadline, a timer's signal (SIGRTMAX - 1, whose handler does nothing and stays) ends the waiting.
// Lock files are never removed: removing one under a waiter would split the
// lock in two.

class FileLock {
 public:
  // Creates the file and its directories if needed. kTimeout when someone else
  // still holds it after `limit`.
  static Result<FileLock> Acquire(const std::string& path, std::chrono::milliseconds limit);

  // The locked descriptor, close-on-exec.
  [[nodiscard]] int Fd() const { return fd_.get(); }

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace railhead
