#include "deviceplugin/daemon/starting.h"

#include <ctime>

namespace railhead {

Starting::Starting(const Notify::Environment& environment, Pages& pages, const sigset_t& signals, Log* log)
    : pages_(pages), signals_(signals), log_(log), notify_(environment) {}

ApplyWatch Starting::Watch() {
  return {[this](const std::string& what) { Doing(what); }, &stop_};
}

void Starting::Doing(const std::string& what) {
  heartbeats_.provisioner.Within(kLongestStep);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = doing_.empty();
    doing_ = what;
  }
  Tell();
  if (first) Begin();
}

void Starting::Begin() {
  const auto served = pages_.Serve([this](const HttpRequest& request) { return Answer(request); });
  if (!served) log_->Warning("metrics and probes are not served", served.error());
  thread_ = std::thread([this] { AwaitSignals(); });
}

// SIGHUP asks for nothing here: the configuration is read when this is over. End() sends one to
// this thread.
void Starting::AwaitSignals() {
  while (!ended_) {
    constexpr timespec kLimit{kTellEvery.count(), 0};
    const int signal = ::sigtimedwait(&signals_, nullptr, &kLimit);
    if (signal == SIGTERM || signal == SIGINT) {
      signal_ = signal;
      stop_ = true;
      notify_.Stopping();
    }
    Tell();
  }
}

int Starting::End() {
  ended_ = true;
  if (thread_.joinable()) {
    (void)::pthread_kill(thread_.native_handle(), SIGHUP);
    thread_.join();
  }
  heartbeats_.provisioner.Rest();
  return signal_;
}

void Starting::Tell() {
  if (!notify_.IsHeard() || !StuckParts(heartbeats_).empty()) return;
  notify_.NeedMoreTime(kMoreTime, StatusLine(NotReady()));
}

Readiness Starting::NotReady() {
  const std::lock_guard lock(mutex_);
  Readiness readiness;
  readiness.missing.push_back({"", doing_});
  return readiness;
}

HttpResponse Starting::Answer(const HttpRequest& request) {
  if (request.path == "/healthz") return HealthzAnswer(heartbeats_);
  if (request.path == "/readyz") return ReadyzAnswer(NotReady());
  HttpResponse response;
  const bool known = request.path == "/metrics";
  response.status = known ? 503 : 404;
  response.body = known ? "there are metrics when the start is over\n" : kNoSuchPage;
  return response;
}

}  // namespace railhead
