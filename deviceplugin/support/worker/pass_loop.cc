#include "deviceplugin/support/worker/pass_loop.h"

#include <utility>

namespace railhead {

PassLoop::PassLoop(std::chrono::seconds interval, Pass pass)
    : interval_(interval),
      pass_(std::move(pass)),
      random_(std::random_device{}()),
      thread_([this] { Loop(); }) {}

PassLoop::~PassLoop() {
  Stop();
  thread_.join();
}

std::chrono::milliseconds PassLoop::Pause() {
  const std::chrono::milliseconds whole = interval_;
  std::uniform_int_distribution<std::chrono::milliseconds::rep> jitter(whole.count() * 4 / 5,
                                                                       whole.count() * 6 / 5);
  return std::chrono::milliseconds(jitter(random_));
}

void PassLoop::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    lock.unlock();
    pass_.run();
    lock.lock();
    first_over_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, Pause(), [this] { return stopped_; });
  }
  ended_ = true;
  changed_.notify_all();
}

bool PassLoop::AwaitFirst(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return first_over_ || stopped_; });
  return first_over_ && !stopped_;
}

void PassLoop::Stop() {
  pass_.stop();
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool PassLoop::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

}  // namespace railhead
