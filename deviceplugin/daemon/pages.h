// Pages: the HTTP servers of railheadd, from the begin of a long start to the daemon's end.
//
// They serve both, so that the address stays bound when the daemon replaces the handler of the start. Of two
// railheadds (an update) one has the shared address. Each has the address of its own, for its own probes.
// Without an address they do nothing. Ownership: owns the server; borrows the log.
//
// Threads: Serve(), SetEnabled() and Stop() from any. A handler runs in the server's threads, in two at once
// if a page is slow. It no longer runs when Serve() with another handler has returned. The same holds for
// Stop(), unless AwaitEnd() says otherwise. Errors: kIo without free descriptors.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/services/kubelet/resource_activity.h"
#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/http/http_server.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"

namespace railhead::daemon {

// The NICs' counters: a driver may take long to read them.
inline constexpr const char* kNicsPath = "/metrics/nics";

class Pages {
 public:
  Pages(const std::optional<http::HttpAddress>& shared, const std::optional<http::HttpAddress>& own, Log* log)
      : shared_address_(shared), own_address_(own), log_(log) {}

  // Sets the handler. The first call binds the addresses, as soon as they are free.
  Result<void> Serve(http::HttpServer::Handler handler);
  // Of the shared address.
  void SetEnabled(bool enabled);
  void Stop();
  // Whether the slow pages have ended, too.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  http::HttpResponse Answer(const http::HttpRequest& request);
  Result<void> StartAt(const std::optional<http::HttpAddress>& address,
                       std::unique_ptr<http::HttpServer>* server);

  const std::optional<http::HttpAddress> shared_address_;
  const std::optional<http::HttpAddress> own_address_;
  Log* log_;
  std::shared_mutex mutex_;  // of the handler, also while it runs
  http::HttpServer::Handler handler_;
  std::unique_ptr<http::HttpServer> shared_;  // last: their threads use the others
  std::unique_ptr<http::HttpServer> own_;
};

// Whether railheadd is alive and whether it is ready, for /healthz, /readyz and the service
// manager.
//
//   alive   Every thread has made progress within its own time limit.
//   ready   Every resource is registered with kubelet, or a newer railheadd serves it. The
//           configuration was valid once: otherwise no daemon would run.
//
// Threads: thread-safe, as what they read is.

using ResourceActivities = std::vector<std::shared_ptr<const kubelet::ResourceActivity>>;

struct Readiness {
  struct Missing {
    std::string resource;  // "": all
    std::string because;
  };
  std::vector<Missing> missing;
  std::vector<std::string> warnings;  // problems that do not make it unready
  std::size_t registered = 0;
  std::size_t standby = 0;
  [[nodiscard]] bool ready() const { return missing.empty(); }
};

// The names of the threads that are stuck.
std::vector<std::string_view> StuckThreads(const Heartbeats& beats);
Readiness ReadinessOf(const Activity& activity, const ResourceActivities& resources);
// There are resources, and a newer process serves all of them, even if kubelet still has our streams.
bool IsStandby(const ResourceActivities& resources);
// For people: "2 of 2 resources are registered with kubelet".
std::string StatusLine(const Readiness& readiness);

// The body of a 404.
inline constexpr const char* kNoSuchPage = "there are /metrics, /healthz and /readyz\n";

// 200 or 503, with a JSON object.
http::HttpResponse HealthzAnswer(const Heartbeats& beats);
http::HttpResponse ReadyzAnswer(const Readiness& readiness);

}  // namespace railhead::daemon
