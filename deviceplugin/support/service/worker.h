// Worker: what the thread of a service sees of the world. Its Wait() is the only poll of a service.
//
// The worker knows at each moment until when the thread has to make progress. While it waits, the thread
// beats by itself. From the return of Wait() to the next one it is at a step, which may take kLongestStep. A
// service that knows a step to take longer says so by Busy(). Who misses that is stuck: in a system call, in
// a lock, or because of a lost wake-up. Ownership: owns its descriptor. Threads: Wait(), Pause() and Busy()
// on the service's; all others from any. Errors: kIo without free descriptors.
#pragma once

#include <poll.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/mutex.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class Worker {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongestStep{60};

  static Result<std::unique_ptr<Worker>> Make();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Returns when `until` has come, after Wake() or RequestStop(), or when one of `fds` has an event, which
  // its `revents` then has. true: woken. Without memory in the kernel it returns after a short pause.
  bool Wait(Clock::time_point until, std::span<pollfd> fds = {});
  // Only RequestStop() ends it earlier. What woke it meanwhile ends the next Wait() at once.
  void Pause(Clock::duration pause);
  // The step that begins now takes `limit` at most. `what`, for people: "a pass over the node's attachments".
  void Busy(Clock::duration limit, std::string what);

  // Ends the next Wait(), or the present one.
  void Wake() const { waker_->Wake(); }
  // Wakes the worker as long as it exists.
  class Waker {
   public:
    explicit Waker(UniqueFd fd) : fd_(std::move(fd)) {}
    void Wake() const;
    [[nodiscard]] int fd() const { return fd_.get(); }

   private:
    const UniqueFd fd_;
  };
  [[nodiscard]] std::weak_ptr<const Waker> waker() const { return waker_; }
  void RequestStop();
  [[nodiscard]] bool StopRequested() const { return stop_.stop_requested(); }
  // For steps that have a way of their own to end early.
  [[nodiscard]] std::stop_token stop() const { return stop_.get_token(); }

  // Work for the service on another thread: of a request, or of a library. It counts like a step. The worker
  // outlives it.
  class Aside {
   public:
    Aside(Worker& worker, Clock::duration limit, std::string what);
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;
    ~Aside();

   private:
    Worker& worker_;
    std::multimap<Clock::time_point, std::string>::iterator place_;
  };

  // A further thread of the service, which `helper` belongs to: it is looked at, too, as long as it exists.
  void Adopt(const std::shared_ptr<const Worker>& helper, std::string what);

  // What the service is busy at, if it should have made progress before `now`.
  [[nodiscard]] std::optional<std::string> StuckAt(Clock::time_point now = Clock::now()) const;

 private:
  // A thread that waits for longer beats in between.
  static constexpr std::chrono::seconds kBeat{60};

  explicit Worker(UniqueFd wake) : waker_(std::make_shared<const Waker>(std::move(wake))) {}
  // Whether something woke it. Beats.
  bool Poll(Clock::time_point until, std::span<pollfd> fds);

  const std::shared_ptr<const Waker> waker_;
  std::stop_source stop_;
  std::vector<pollfd> polled_;
  bool woken_in_pause_ = false;

  mutable Mutex mutex_;
  Clock::time_point due_ RH_GUARDED_BY(mutex_) = Clock::time_point::max();  // before the service runs
  std::string busy_at_ RH_GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, std::string> asides_ RH_GUARDED_BY(mutex_);  // by when each is due
  std::vector<std::pair<std::weak_ptr<const Worker>, std::string>> helpers_ RH_GUARDED_BY(mutex_);
};

}  // namespace railhead
