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

#include "deviceplugin/support/http/http_address.h"
#include "deviceplugin/support/http/http_server.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"

namespace railhead {

// What NICs count: a driver may take long over it.
inline constexpr const char* kNicsPath = "/metrics/nics";

class Pages {
 public:
  Pages(const std::optional<HttpAddress>& address, Log* log) : address_(address), log_(log) {}

  // From now on with this handler. The first call takes the address, as soon as it is free.
  Result<void> Serve(HttpServer::Handler handler);
  void Want(bool wanted);
  void Stop();
  // Whether the slow pages have come to their end, too.
  bool AwaitEnd(std::chrono::milliseconds limit);

 private:
  HttpResponse Answer(const HttpRequest& request);

  const std::optional<HttpAddress> address_;
  Log* log_;
  std::shared_mutex mutex_;  // of the handler, also while it runs
  HttpServer::Handler handler_;
  std::unique_ptr<HttpServer> server_;  // last: its thread uses the others
};

}  // namespace railhead
