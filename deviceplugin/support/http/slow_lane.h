// SlowLane: a second thread for answers that take as long as somebody else does, so that the first
// goes on answering probes meanwhile.
//
// One request after the other; no more than kMostWaiting stand in line, so a driver that hangs costs one
// thread and not one request more with every scrape. The thread starts with the first request. Ownership:
// owns its thread. Threads: `answer` and `ready` are called in the lane's; the rest from one other, Stop()
// and AwaitEnd() from any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "deviceplugin/support/http/http_message.h"

namespace railhead {

class SlowLane {
 public:
  using Ticket = std::uint64_t;
  using Answer = std::function<HttpResponse(const HttpRequest&)>;

  static constexpr std::size_t kMostWaiting = 4;

  // `ready`: there is something to Take().
  SlowLane(Answer answer, std::function<void()> ready)
      : answer_(std::move(answer)), ready_(std::move(ready)) {}
  // Waits for the answer that is being made.
  ~SlowLane();
  SlowLane(const SlowLane&) = delete;
  SlowLane& operator=(const SlowLane&) = delete;

  // nullopt: too many wait already.
  std::optional<Ticket> Ask(HttpRequest request);
  // One that is ready; nullopt: none.
  std::optional<std::pair<Ticket, HttpResponse>> Take();
  // Whoever waits gets no answer any more.
  void Stop();
  // Whether the thread has ended, or never was.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  void Loop();

  const Answer answer_;
  const std::function<void()> ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<Ticket, HttpRequest>> waiting_;
  std::deque<std::pair<Ticket, HttpResponse>> done_;
  Ticket last_ = 0;
  bool busy_ = false;
  bool stopped_ = false;
  bool ended_ = true;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead
