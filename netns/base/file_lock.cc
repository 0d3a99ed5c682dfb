#include "netns/base/file_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <thread>

#include "netns/base/files.h"

namespace railhead {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

timespec TimeOf(milliseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {static_cast<time_t>(seconds.count()),
          static_cast<long>(std::chrono::nanoseconds(time - seconds).count())};
}

// While it lives, a call that the thread is blocked in ends with EINTR after `limit`, and again and
// again from then on: a signal that comes between two calls ends neither.
class Interrupter {
 public:
  explicit Interrupter(milliseconds limit) {
    // Stays for good: another thread may be waiting when this one is done.
    struct sigaction ignore = {};
    ignore.sa_handler = [](int) {};
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = Signal();
    event._sigev_un._tid = ::gettid();
    armed_ =
        ::sigaction(Signal(), &ignore, nullptr) == 0 && ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (!armed_) return;
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, Signal());
    ::pthread_sigmask(SIG_UNBLOCK, &signals, &mask_before_);
    const itimerspec times = {TimeOf(milliseconds(10)), TimeOf(std::max(limit, milliseconds(1)))};
    ::timer_settime(timer_, 0, &times, nullptr);
  }
  Interrupter(const Interrupter&) = delete;
  Interrupter& operator=(const Interrupter&) = delete;
  ~Interrupter() {
    if (!armed_) return;
    ::timer_delete(timer_);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  [[nodiscard]] bool armed() const { return armed_; }

 private:
  // Of those that nobody else uses.
  static int Signal() { return SIGRTMAX - 1; }

  timer_t timer_ = nullptr;
  sigset_t mask_before_ = {};
  bool armed_ = false;
};

// Whether the lock was got; errno says why not: EINTR after `limit`.
//
// The kernel's queue (fs/locks.c) is first come, first served and wakes one. Who asks again and
// again instead gets the lock by luck: of 32 at once the last waited ten times as long as most.
bool LockWithin(int fd, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  const Interrupter interrupter(limit);
  for (;;) {
    if (::flock(fd, interrupter.armed() ? LOCK_EX : LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EINTR && errno != EWOULDBLOCK) return false;
    if (Clock::now() >= deadline) {
      errno = EINTR;
      return false;
    }
    if (!interrupter.armed()) std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace

Result<FileLock> FileLock::Acquire(const std::string& path, std::chrono::milliseconds limit) {
  auto opened = OpenOwnFile(path, O_RDWR | O_CREAT);
  if (!opened && opened.error().sys_errno == ENOENT) {
    RH_TRY(MakeDirectories(path.substr(0, path.rfind('/'))));
    opened = OpenOwnFile(path, O_RDWR | O_CREAT);
  }
  UniqueFd fd = RH_TRY_WRAP(std::move(opened), "opening the lock");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return FileLock(std::move(fd));
  if (errno != EWOULDBLOCK && errno != EINTR) return FailSys(errno, "locking " + path);
  if (limit > milliseconds::zero()) {
    if (LockWithin(fd.get(), limit)) return FileLock(std::move(fd));
    if (errno != EINTR) return FailSys(errno, "locking " + path);
  }
  return Fail(ErrorCode::kTimeout,
              "locking " + path + ": still held after " + std::to_string(limit.count()) + " ms");
}

}  // namespace railhead
