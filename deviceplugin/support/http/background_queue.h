// BackgroundQueue: a second thread for answers that others can delay. The first thread then still answers
// probes.
//
// One request after the other. At most kMostWaiting requests wait, so a driver that hangs costs one thread,
// and not a further request with every scrape. The thread starts with the first request. Ownership: owns its
// thread, borrows the worker. Threads: `answer` is called in the lane's; the rest from one other.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/service/worker.h"
#include "netns/base/mutex.h"

namespace railhead::http {

class BackgroundQueue {
 public:
  using Ticket = std::uint64_t;
  using Answer = std::function<HttpResponse(const HttpRequest&)>;

  static constexpr std::size_t kMostWaiting = 4;

  // `worker` is woken when there is something to Take(), and finds an answer that hangs.
  BackgroundQueue(Answer answer, Worker& worker) : answer_(std::move(answer)), worker_(worker) {}
  // Waits for the answer that the thread is making.
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  // nullopt: too many wait already, or the machine has no thread left.
  std::optional<Ticket> Submit(HttpRequest request);
  // One that is ready; nullopt: none.
  std::optional<std::pair<Ticket, HttpResponse>> Take();

 private:
  void Loop();

  const Answer answer_;
  Worker& worker_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::pair<Ticket, HttpRequest>> waiting_ RH_GUARDED_BY(mutex_);
  std::deque<std::pair<Ticket, HttpResponse>> done_ RH_GUARDED_BY(mutex_);
  Ticket last_ RH_GUARDED_BY(mutex_) = 0;
  bool busy_ RH_GUARDED_BY(mutex_) = false;
  bool stopped_ RH_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead::http
