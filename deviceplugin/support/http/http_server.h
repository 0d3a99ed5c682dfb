// HttpServer: the service that answers GET and HEAD on one address. Its thread makes the quick answers, a
// second one the slow ones.
//
// If another process has the address, the server tries again every second. So of two daemons (an update) one
// answers at any time. No client can block the server: connections are few, each has a deadline, and what a
// client may send is bounded. One connection too many closes the one that has waited longest.
//
// Ownership: owns its sockets, borrows `left`. Threads: as Service. The slow lane's thread calls `handler`,
// too. Errors: none; what keeps the address is reported.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/support/http/background_queue.h"
#include "deviceplugin/support/http/http_address.h"
#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/unique_fd.h"

namespace railhead::http {

class HttpServer : public Service {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  // Whether an answer may take long. Gets the request as it came: its method is GET or HEAD.
  using IsSlow = std::function<bool(const HttpRequest&)>;
  // Reports the bound address, with the chosen port if the configured one is 0. If binding failed, reports
  // why, when the reason has changed.
  using Report = std::function<void(const Result<std::string>& address)>;

  static constexpr std::size_t kMostConnections = 16;

  struct Options {
    std::string_view name;  // of the service; a literal
    HttpAddress address;
    IsSlow is_slow = nullptr;
    // Nothing is served before it is true; nullptr: from the start.
    const Published<bool>* from = nullptr;
    // While it is true, the address is left to another process; nullptr: never.
    const Published<bool>* left = nullptr;
  };

  HttpServer(Options options, Handler handler, Report report);

  [[nodiscard]] std::string_view name() const override { return name_; }
  void Register(MetricRegistry&) override {}
  Result<void> Run(Worker& worker) override;

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

  void KeepAddress();
  Result<std::string> Listen();
  void WaitForWork(Worker& worker);
  void Accept();
  // False when the connection is done.
  bool Work(Connection* connection);
  bool Receive(Connection* connection);
  static bool Send(Connection* connection);
  void Answer(const HttpParsed& parsed, Connection* connection);
  void TakeSlowAnswers();
  [[nodiscard]] bool IsLeft() const { return left_ != nullptr && *left_->Get(); }

  const std::string_view name_;
  HttpAddress address_;  // a port that was chosen stays
  const IsSlow is_slow_;
  const Published<bool>* const from_;
  const Published<bool>* const left_;
  const Handler handler_;
  const Report report_;
  std::optional<BackgroundQueue> slow_;  // while it runs
  UniqueFd listener_;
  Clock::time_point next_attempt_;
  OncePerChange failure_;
  std::vector<Connection> connections_;
};

}  // namespace railhead::http
