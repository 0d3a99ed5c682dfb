// HttpServer: answers GET and HEAD on one address, with one thread.
//
// An address that another process has is no reason to end: it is tried again every second
// and taken when it is free, so that of two daemons (an update) one answers at any time.
// Nobody can hold it up: connections are few, each has a deadline, one more than fit closes
// the one that has waited longest, and what a client may send is bounded.
//
// Ownership: owns its sockets. Threads: its own one calls `handler` and `report`; Stop() and
// Want() from any. Errors: kIo when it has no descriptors.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/metrics/http_address.h"
#include "deviceplugin/metrics/http_message.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead {

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  // The address that was taken (with the port that was chosen where it is 0), or why it was
  // not: only when that is another reason than before.
  using Report = std::function<void(const Result<std::string>& address)>;

  static constexpr std::size_t kMostConnections = 16;

  static Result<std::unique_ptr<HttpServer>> Start(const HttpAddress& address, Handler handler,
                                                   Report report);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  // false: gives the address up, for another process, until it is true again.
  void Want(bool wanted);
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    UniqueFd fd;
    std::string in;
    std::string out;       // answering when it is not empty
    std::size_t sent = 0;  // of `out`
    bool over = false;     // only waits for the other side's end
    Clock::time_point deadline;
  };

  HttpServer(const HttpAddress& address, Handler handler, Report report, UniqueFd wake);
  void Loop();
  void KeepAddress();
  Result<std::string> Listen();
  void WaitForWork();
  void Accept();
  // False when the connection is done.
  bool Work(Connection* connection) const;
  bool Receive(Connection* connection) const;
  static bool Send(Connection* connection);
  [[nodiscard]] std::string AnswerTo(const HttpParsed& parsed) const;
  void Wake() const;

  HttpAddress address_;  // a port that was chosen stays
  const Handler handler_;
  const Report report_;
  const UniqueFd wake_;
  UniqueFd listener_;
  Clock::time_point next_attempt_;
  std::string last_error_;
  std::vector<Connection> connections_;
  std::atomic<bool> wanted_{true};
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace railhead
