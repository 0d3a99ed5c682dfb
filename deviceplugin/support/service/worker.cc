#include "deviceplugin/support/service/worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <thread>

#include "netns/base/mutex.h"

namespace railhead {
namespace {

// After a poll that failed, for example without memory. The next one must not follow at once.
constexpr std::chrono::milliseconds kAfterPollError{100};

int Milliseconds(Worker::Clock::duration left) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::max<std::int64_t>(whole, 0));
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::Make() {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return FailSys(errno, "making an eventfd descriptor");
  return std::unique_ptr<Worker>(new Worker(std::move(wake)));
}

bool Worker::Wait(Clock::time_point until, std::span<pollfd> fds) {
  const bool before = std::exchange(woken_in_pause_, false);
  const bool woken = Poll(before ? Clock::now() : until, fds) || before;
  Busy(kLongestStep, "a step");
  return woken;
}

void Worker::Pause(Clock::duration pause) {
  const auto until = Clock::now() + pause;
  while (!StopRequested() && Clock::now() < until) woken_in_pause_ |= Poll(until, {});
  Busy(kLongestStep, "a step");
}

bool Worker::Poll(Clock::time_point until, std::span<pollfd> fds) {
  polled_.assign(fds.begin(), fds.end());
  polled_.push_back({waker_->fd(), POLLIN, 0});
  int ready = 0;
  while (ready == 0 && !StopRequested()) {
    const auto left = std::min<Clock::duration>(until - Clock::now(), kBeat);
    Busy(std::max(left, Clock::duration::zero()) + kLongestStep, "waiting");
    ready = ::poll(polled_.data(), polled_.size(), Milliseconds(left));
    if (ready < 0 && errno != EINTR) std::this_thread::sleep_for(kAfterPollError);
    if (Clock::now() >= until) break;
  }
  for (std::size_t i = 0; i < fds.size(); ++i) fds[i].revents = ready > 0 ? polled_[i].revents : short{0};
  std::uint64_t count = 0;
  return ready > 0 && polled_.back().revents != 0 && ::read(waker_->fd(), &count, sizeof count) > 0;
}

void Worker::Busy(Clock::duration limit, std::string what) {
  const MutexLock lock(mutex_);
  due_ = Clock::now() + limit;
  busy_at_ = std::move(what);
}

void Worker::Waker::Wake() const {
  const std::uint64_t one = 1;
  // A full counter means that a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
}

void Worker::RequestStop() {
  stop_.request_stop();
  Wake();
}

void Worker::Adopt(const std::shared_ptr<const Worker>& helper, std::string what) {
  const MutexLock lock(mutex_);
  std::erase_if(helpers_, [&](const auto& one) { return one.first.expired() || one.first.lock() == helper; });
  helpers_.emplace_back(helper, std::move(what));
}

std::optional<std::string> Worker::StuckAt(Clock::time_point now) const {
  const MutexLock lock(mutex_);
  for (const auto& [weak, what] : helpers_) {
    const auto helper = weak.lock();
    const auto at = helper ? helper->StuckAt(now) : std::nullopt;
    if (at) return what + ": " + *at;
  }
  if (now > due_) return busy_at_;
  if (!asides_.empty() && now > asides_.begin()->first) return asides_.begin()->second;
  return std::nullopt;
}

Worker::Aside::Aside(Worker& worker, Clock::duration limit, std::string what) : worker_(worker) {
  const MutexLock lock(worker_.mutex_);
  place_ = worker_.asides_.emplace(Clock::now() + limit, std::move(what));
}

Worker::Aside::~Aside() {
  const MutexLock lock(worker_.mutex_);
  worker_.asides_.erase(place_);
}

}  // namespace railhead
