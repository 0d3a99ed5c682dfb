#include "deviceplugin/support/http/background_queue.h"

#include <chrono>
#include <system_error>

#include "netns/base/mutex.h"

namespace railhead::http {
namespace {

// Drivers of many NICs, each slow.
constexpr std::chrono::minutes kLongestAnswer{5};

}  // namespace

BackgroundQueue::~BackgroundQueue() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::optional<BackgroundQueue::Ticket> BackgroundQueue::Submit(HttpRequest request) {
  const MutexLock lock(mutex_);
  if (stopped_ || waiting_.size() + (busy_ ? 1 : 0) >= kMostWaiting) return std::nullopt;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error&) {
      return std::nullopt;  // the machine has no thread left
    }
  }
  waiting_.emplace_back(++last_, std::move(request));
  changed_.notify_all();
  return last_;
}

void BackgroundQueue::Loop() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() RH_REQUIRES(mutex_) { return stopped_ || !waiting_.empty(); });
    if (stopped_) break;
    const auto [ticket, request] = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    HttpResponse response;
    {
      const Worker::Aside answering(worker_, kLongestAnswer, "the page " + request.path);
      response = answer_(request);
    }
    lock.lock();
    busy_ = false;
    if (stopped_) break;
    done_.emplace_back(ticket, std::move(response));
    worker_.Wake();
  }
}

std::optional<std::pair<BackgroundQueue::Ticket, HttpResponse>> BackgroundQueue::Take() {
  const MutexLock lock(mutex_);
  if (done_.empty()) return std::nullopt;
  auto first = std::move(done_.front());
  done_.pop_front();
  return first;
}

}  // namespace railhead::http
