#include "deviceplugin/support/http/slow_lane.h"

namespace railhead {

SlowLane::~SlowLane() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

std::optional<SlowLane::Ticket> SlowLane::Ask(HttpRequest request) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || waiting_.size() + (busy_ ? 1 : 0) >= kMostWaiting) return std::nullopt;
  waiting_.emplace_back(++last_, std::move(request));
  if (thread_.joinable()) {
    changed_.notify_all();
  } else {
    ended_ = false;
    thread_ = std::thread([this] { Loop(); });
  }
  return last_;
}

void SlowLane::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) break;
    const auto [ticket, request] = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    HttpResponse response = answer_(request);
    lock.lock();
    busy_ = false;
    if (stopped_) break;
    done_.emplace_back(ticket, std::move(response));
    ready_();
  }
  ended_ = true;
  changed_.notify_all();
}

std::optional<std::pair<SlowLane::Ticket, HttpResponse>> SlowLane::Take() {
  const std::lock_guard lock(mutex_);
  if (done_.empty()) return std::nullopt;
  auto first = std::move(done_.front());
  done_.pop_front();
  return first;
}

void SlowLane::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool SlowLane::AwaitEnd(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

}  // namespace railhead
