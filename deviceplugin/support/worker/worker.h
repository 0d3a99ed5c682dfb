// Heartbeat: the time of a thread's next expected progress.
//
// Each time a thread begins to work or to wait, it sets a time limit for its next heartbeat. A thread that
// misses the limit is stuck: in a system call, in a lock, or because of a lost wake-up.
// Ownership: the thread borrows it. Threads: thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/unique_fd.h"
#include "netns/nl/uevents.h"

namespace railhead {

class Heartbeat {
 public:
  using Clock = std::chrono::steady_clock;

  void Within(std::chrono::nanoseconds limit) { due_ = (Clock::now() + limit).time_since_epoch().count(); }
  // The thread has no work: until the next Within() it is never late.
  void SetIdle() { due_ = kNever; }

  [[nodiscard]] bool IsLate(Clock::time_point now = Clock::now()) const {
    return now.time_since_epoch().count() > due_;
  }

 private:
  static constexpr Clock::rep kNever = Clock::duration::max().count();
  std::atomic<Clock::rep> due_{kNever};
};

// The heartbeat of requests that run side by side. It is due when the first of them is, however many come and
// go meanwhile.
class SharedHeartbeat {
 public:
  using Clock = Heartbeat::Clock;

  // A request, for as long as it runs.
  class Request {
   public:
    Request(SharedHeartbeat& heartbeat, std::chrono::nanoseconds limit)
        : heartbeat_(heartbeat), due_(Clock::now() + limit) {
      const std::lock_guard lock(heartbeat_.mutex_);
      heartbeat_.due_.insert(due_);
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    ~Request() {
      const std::lock_guard lock(heartbeat_.mutex_);
      heartbeat_.due_.erase(heartbeat_.due_.find(due_));
    }

   private:
    SharedHeartbeat& heartbeat_;
    const Clock::time_point due_;
  };

  [[nodiscard]] bool IsLate(Clock::time_point now = Clock::now()) const {
    const std::lock_guard lock(mutex_);
    return !due_.empty() && now > *due_.begin();
  }

 private:
  mutable std::mutex mutex_;
  std::multiset<Clock::time_point> due_;
};

// The threads that railheadd cannot do without.
struct Heartbeats {
  Heartbeat node_watcher;
  Heartbeat registrar;
  Heartbeat reconciler;
  SharedHeartbeat binder;
  Heartbeat provisioner;  // of a start that takes long
};

// NodeEvents: waits for all events that may change this node's advertisement.
//
//   hardware   the kernel's device events (netns/nl/uevents.h)
//   files      something happened in the directory of a watched file. A ConfigMap is
//              replaced by renaming a link beside the file, so all of the directory counts.
//   woken      Wake() was called
//
// An event is only a reason for a discovery, which finds the change.
// Ownership: owns its descriptors. Threads: one waits, any may call Wake().
// Errors: kIo without free descriptors.

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
  Seen Wait(Clock::time_point until);
  void Wake() const;

 private:
  NodeEvents(OpenUevents open, UniqueFd files, UniqueFd wake)
      : open_(std::move(open)), files_(std::move(files)), wake_(std::move(wake)) {}

  OpenUevents open_;
  std::optional<Uevents> hardware_;
  std::optional<Error> uevents_error_;
  UniqueFd files_;
  UniqueFd wake_;
  std::map<std::string, int> watches_;  // directory -> inotify's number
};

// A thread of passes: one at once, then one every interval. The interval varies by up to a fifth, so that the
// nodes of a cluster do not all run at the same moment. After an unfinished pass the next one comes within a
// second; further ones in a row come after twice the time each, up to the interval.
//
// Threads: its own one calls `run`; Stop() and the waits from any other.

class PassLoop {
 public:
  struct Pass {
    std::function<void()> run;
    std::function<void()> stop;  // a pass that runs ends before its next step, later ones at once
    // After each pass: whether it left something that may be possible soon. Empty: never.
    std::function<bool()> unfinished = nullptr;
  };

  PassLoop(std::chrono::seconds interval, Pass pass);
  // Ends the thread, however long its step takes.
  ~PassLoop();
  PassLoop(const PassLoop&) = delete;
  PassLoop& operator=(const PassLoop&) = delete;

  // true when the first pass is over, false at the limit or when stopped before.
  bool AwaitFirst(std::chrono::milliseconds limit);
  // The pass that runs ends before its next step.
  void Stop();
  // Whether the thread has ended.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  void Loop();
  std::chrono::milliseconds Pause();

  const std::chrono::seconds interval_;
  const Pass pass_;
  std::minstd_rand random_;
  std::chrono::milliseconds retry_;  // the pause after an unfinished pass

  std::mutex mutex_;
  std::condition_variable changed_;
  bool first_over_ = false;
  bool stopped_ = false;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead
