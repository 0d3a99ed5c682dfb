// Pages: what answers on the HTTP address, from the start of a long start to the daemon's end.
//
// There is one server, so that the address is not given up when another part takes over the
// answering. Without an address it does nothing.
// Ownership: owns the server; borrows the log. Threads: Serve(), Want() and Stop() from any; a
// handler runs in the server's threads, two at once where a page is slow, and not any more when Serve() with
// another one or, unless AwaitEnd() says otherwise, Stop() has returned. Errors: kIo when there are no
// descriptors left.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/http/http_server.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"

namespace railhead::daemon {

// What NICs count: a driver may take long over it.
inline constexpr const char* kNicsPath = "/metrics/nics";

class Pages {
 public:
  Pages(const std::optional<http::HttpAddress>& address, Log* log) : address_(address), log_(log) {}

  // From now on with this handler. The first call takes the address, as soon as it is free.
  Result<void> Serve(http::HttpServer::Handler handler);
  void Want(bool wanted);
  void Stop();
  // Whether the slow pages have come to their end, too.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  http::HttpResponse Answer(const http::HttpRequest& request);

  const std::optional<http::HttpAddress> address_;
  Log* log_;
  std::shared_mutex mutex_;  // of the handler, also while it runs
  http::HttpServer::Handler handler_;
  std::unique_ptr<http::HttpServer> server_;  // last: its thread uses the others
};

// Whether railheadd is alive and whether it is ready, for /healthz, /readyz and the service
// manager.
//
//   alive   every part has been heard of within the time that it gave itself
//   ready   every resource is registered with kubelet, or left to a newer railheadd. That
//           the configuration was good once is given: without, there is no daemon.
//
// Threads: thread-safe, as what they read is.

using ResourceActivities = std::vector<std::shared_ptr<const kubelet::ResourceActivity>>;

struct Readiness {
  struct Missing {
    std::string resource;  // "" for what concerns all
    std::string because;
  };
  std::vector<Missing> missing;
  std::vector<std::string> warnings;  // what is not as it should be and does not stop it
  std::size_t registered = 0;
  std::size_t standing_by = 0;
  [[nodiscard]] bool ready() const { return missing.empty(); }
};

// The names of the parts that hang.
std::vector<std::string_view> StuckParts(const Heartbeats& beats);
Readiness ReadinessOf(const Activity& activity, const ResourceActivities& resources);
// There are resources, and a newer process serves all of them, whatever kubelet still has of ours.
bool StandsBy(const ResourceActivities& resources);
// For people: "2 of 2 resources are registered with kubelet".
std::string StatusLine(const Readiness& readiness);

// The body of a 404.
inline constexpr const char* kNoSuchPage = "there are /metrics, /healthz and /readyz\n";

// 200 or 503, with a JSON object.
http::HttpResponse HealthzAnswer(const Heartbeats& beats);
http::HttpResponse ReadyzAnswer(const Readiness& readiness);

}  // namespace railhead::daemon
