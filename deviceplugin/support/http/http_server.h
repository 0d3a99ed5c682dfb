// HttpServer: answers GET and HEAD on one address. One thread makes the quick answers, a second one the slow
// ones.
//
// If another process has the address, the server tries again every second. So of two daemons (an update) one
// answers at any time. No client can block the server: connections are few, each has a deadline, and what a
// client may send is bounded. One connection too many closes the one that has waited longest.
//
// Ownership: owns its sockets. Threads: its own thread calls `handler` and `report`. The slow lane's thread
// calls `handler`, too. Stop(), SetEnabled() and AwaitEnd() from any. Errors: kIo without free descriptors.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "deviceplugin/support/http/http_message.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead::http {

// BackgroundQueue: a second thread for answers that others can delay. The first thread then still answers
// probes.
//
// One request after the other. At most kMostWaiting requests wait, so a driver that hangs costs one thread,
// and not a further request with every scrape. The thread starts with the first request. Ownership: owns its
// thread. Threads: `answer` and `ready` are called in the lane's; the rest from one other, Stop() and
// AwaitEnd() from any.

class BackgroundQueue {
 public:
  using Ticket = std::uint64_t;
  using Answer = std::function<HttpResponse(const HttpRequest&)>;

  static constexpr std::size_t kMostWaiting = 4;

  // `ready`: there is something to Take().
  BackgroundQueue(Answer answer, std::function<void()> ready)
      : answer_(std::move(answer)), ready_(std::move(ready)) {}
  // Waits for the answer that the thread is making.
  ~BackgroundQueue();
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  // nullopt: too many wait already, or the machine has no thread left.
  std::optional<Ticket> Submit(HttpRequest request);
  // One that is ready; nullopt: none.
  std::optional<std::pair<Ticket, HttpResponse>> Take();
  // Waiting clients then get no answer.
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

// Where HTTP is served: a numeric IP address and a port, or a Unix socket.
//
//   127.0.0.1:9917   [::1]:9917   [::]:9917 (IPv4, too)   0.0.0.0:9917   unix:/run/probes/railheadd.sock
//
// A Unix socket is of one server: what an ended one left at its path is replaced.
// Names are not resolved: their address may change, and the address to listen at should not.
// Threads: values and pure functions. Errors: kInvalid.

struct HttpAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

Result<HttpAddress> ParseHttpAddress(const std::string& text);
// As ParseHttpAddress() takes it.
std::string ToString(const HttpAddress& address);

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  // Whether an answer may take long. Gets the request as it came: its method is GET or HEAD.
  using IsSlow = std::function<bool(const HttpRequest&)>;
  // Reports the bound address, with the chosen port if the configured one is 0. If binding failed, reports
  // why, when the reason has changed.
  using Report = std::function<void(const Result<std::string>& address)>;

  static constexpr std::size_t kMostConnections = 16;

  static Result<std::unique_ptr<HttpServer>> Start(const HttpAddress& address, Handler handler, Report report,
                                                   IsSlow is_slow = nullptr);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  // false: gives the address up for another process, until a call with true.
  void SetEnabled(bool enabled);
  void Stop();
  // Whether all slow answers have ended.
  bool AwaitEnd(std::chrono::milliseconds limit) { return slow_.AwaitEnd(limit); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    UniqueFd fd;
    std::string in;
    std::string out;                                // answering when it is not empty
    std::size_t sent = 0;                           // of `out`
    bool over = false;                              // only waits for the other side's end
    std::size_t thrown_away = 0;                    // since then
    std::optional<BackgroundQueue::Ticket> ticket;  // waits for the slow lane
    bool with_body = true;
    Clock::time_point deadline;
  };

  HttpServer(const HttpAddress& address, Handler handler, Report report, IsSlow is_slow, UniqueFd wake);
  void Loop();
  void KeepAddress();
  Result<std::string> Listen();
  void WaitForWork();
  void Accept();
  // False when the connection is done.
  bool Work(Connection* connection);
  bool Receive(Connection* connection);
  static bool Send(Connection* connection);
  void Answer(const HttpParsed& parsed, Connection* connection);
  void TakeSlowAnswers();
  void Wake() const;

  HttpAddress address_;  // a port that was chosen stays
  const Handler handler_;
  const Report report_;
  const IsSlow is_slow_;
  const UniqueFd wake_;
  BackgroundQueue slow_;
  UniqueFd listener_;
  Clock::time_point next_attempt_;
  std::string last_error_;
  std::vector<Connection> connections_;
  std::atomic<bool> enabled_{true};
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead::http
