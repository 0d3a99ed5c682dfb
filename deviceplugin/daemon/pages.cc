#include "deviceplugin/daemon/pages.h"

#include <string>
#include <utility>

namespace railhead {

Result<void> Pages::Serve(HttpServer::Handler handler) {
  if (!address_) return {};
  {
    const std::lock_guard lock(mutex_);
    handler_ = std::move(handler);
  }
  if (server_) return {};
  server_ = RH_TRY(HttpServer::Start(
      *address_, [this](const HttpRequest& request) { return Answer(request); },
      [log = log_](const Result<std::string>& address) {
        if (address) {
          log->Info("serving metrics and probes", {{"address", *address}});
        } else {
          log->Warning("metrics and probes are not served", address.error());
        }
      },
      [](const HttpRequest& request) { return request.path == kNicsPath; }));
  return {};
}

HttpResponse Pages::Answer(const HttpRequest& request) {
  const std::shared_lock lock(mutex_);
  return handler_(request);
}

void Pages::Want(bool wanted) {
  if (server_) server_->Want(wanted);
}

void Pages::Stop() {
  if (server_) server_->Stop();
}

bool Pages::AwaitEnd(std::chrono::milliseconds limit) {
  return !server_ || server_->AwaitEnd(limit);
}

}  // namespace railhead
