#include "deviceplugin/reconcile/loop.h"

#include <utility>

namespace railhead {

ReconcileLoop::ReconcileLoop(Reconciler& reconciler, std::chrono::seconds interval, Report report)
    : reconciler_(reconciler),
      interval_(interval),
      report_(std::move(report)),
      random_(std::random_device{}()),
      thread_([this] { Loop(); }) {}

ReconcileLoop::~ReconcileLoop() {
  Stop();
  thread_.join();
}

std::chrono::milliseconds ReconcileLoop::Pause() {
  const std::chrono::milliseconds whole = interval_;
  std::uniform_int_distribution<std::chrono::milliseconds::rep> jitter(whole.count() * 4 / 5,
                                                                       whole.count() * 6 / 5);
  return std::chrono::milliseconds(jitter(random_));
}

void ReconcileLoop::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    lock.unlock();
    const ReconcileReport report = reconciler_.Run();
    report_(report);
    lock.lock();
    first_over_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, Pause(), [this] { return stopped_; });
  }
  ended_ = true;
  changed_.notify_all();
}

bool ReconcileLoop::AwaitFirst(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return first_over_ || stopped_; });
  return first_over_ && !stopped_;
}

void ReconcileLoop::Stop() {
  reconciler_.Stop();
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool ReconcileLoop::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

}  // namespace railhead
