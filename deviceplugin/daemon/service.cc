#include "deviceplugin/daemon/service.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "netns/base/text.h"

namespace railhead::daemon {
namespace {

constexpr std::chrono::milliseconds kWhileChanging{100};
constexpr std::chrono::milliseconds kWhileCalm{5'000};

}  // namespace

Service::Service(const Notify::Environment& environment, const Activity& activity, Resources resources)
    : notify_(environment), activity_(activity), resources_(std::move(resources)) {}

std::optional<std::chrono::milliseconds> Service::interval() const {
  if (!notify_.IsHeard()) return std::nullopt;
  if (!ready_ || reloaded_at_) return kWhileChanging;
  const auto watchdog = notify_.watchdog_interval();
  if (!watchdog) return kWhileCalm;
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(*watchdog);
  return std::clamp(whole, std::chrono::milliseconds(1), kWhileCalm);
}

bool Service::ServesAll(const ResourceActivities& resources) const {
  return activity_.serving &&
         std::ranges::all_of(resources, [](const auto& resource) { return resource->serving.load(); });
}

void Service::Tick() {
  if (!notify_.IsHeard()) return;
  const ResourceActivities resources = resources_();
  std::string status = StatusLine(ReadinessOf(activity_, resources));
  if (!activity_.node.config_ok) status += "; the configuration is wrong, the last good one goes on";
  const bool changed = std::exchange(status_, status) != status;
  if (!ready_ && ServesAll(resources)) {
    ready_ = true;
    notify_.Ready(status);
  } else if (reloaded_at_ && activity_.node.looks_over.value() >= *reloaded_at_) {
    reloaded_at_.reset();
    notify_.Ready(status);
  } else if (changed) {
    notify_.Status(status);
  }
  if (notify_.watchdog_interval() && StuckParts(activity_.heartbeats).empty()) notify_.Alive();
}

void Service::Reloading() {
  if (!notify_.IsHeard() || !ready_) return;
  // A look that is under way may have read the old configuration.
  reloaded_at_ = activity_.node.looks_begun.value() + 1;
  notify_.Reloading();
}

void Service::Stopping() {
  notify_.Stopping();
}

namespace {

std::string Take(const char* name) {
  const char* value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  (void)::unsetenv(name);
  return taken;
}

// In the words of the protocol a line ends a word.
std::string OneLine(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  return line;
}

std::string MonotonicUsec() {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::to_string(now.tv_sec * 1'000'000 + now.tv_nsec / 1000);
}

// Half of what the manager allows, as it recommends.
std::optional<std::chrono::microseconds> WatchdogOf(const Notify::Environment& environment) {
  const auto usec = ParseInt(environment.watchdog_usec);
  if (!usec || *usec < 2) return std::nullopt;
  const bool other =
      !environment.watchdog_pid.empty() && environment.watchdog_pid != std::to_string(::getpid());
  if (other) return std::nullopt;
  return std::chrono::microseconds(*usec / 2);
}

}  // namespace

Notify::Environment Notify::TakeEnvironment() {
  return {Take("NOTIFY_SOCKET"), Take("WATCHDOG_USEC"), Take("WATCHDOG_PID")};
}

Notify::Notify(const Environment& environment) {
  const std::string& name = environment.socket;
  if (name.empty() || name.size() >= sizeof address_.sun_path || (name[0] != '/' && name[0] != '@')) return;
  address_.sun_family = AF_UNIX;
  std::memcpy(address_.sun_path, name.data(), name.size());
  if (name[0] == '@') address_.sun_path[0] = '\0';
  length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  socket_.Reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) return;
  // A manager that is busy is waited for, but not for ever.
  constexpr timeval kPatience{2, 0};
  (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  watchdog_ = WatchdogOf(environment);
}

void Notify::Send(std::string_view message) const {
  if (!socket_.valid()) return;
  (void)::sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address_), length_);
}

void Notify::Ready(std::string_view status) {
  Send("READY=1\nSTATUS=" + OneLine(status));
}

void Notify::Status(std::string_view status) {
  Send("STATUS=" + OneLine(status));
}

void Notify::Reloading() {
  Send("RELOADING=1\nMONOTONIC_USEC=" + MonotonicUsec());
}

void Notify::Stopping() {
  Send("STOPPING=1");
}

void Notify::Alive() {
  Send("WATCHDOG=1");
}

void Notify::NeedMoreTime(std::chrono::microseconds more, std::string_view status) {
  Send("EXTEND_TIMEOUT_USEC=" + std::to_string(more.count()) + "\nSTATUS=" + OneLine(status));
}

Starting::Starting(const Notify::Environment& environment, Pages& pages, const sigset_t& signals, Log* log)
    : pages_(pages), signals_(signals), log_(log), notify_(environment) {}

provision::ApplyWatch Starting::Watch() {
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
  const auto served = pages_.Serve([this](const http::HttpRequest& request) { return Answer(request); });
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

http::HttpResponse Starting::Answer(const http::HttpRequest& request) {
  if (request.path == "/healthz") return HealthzAnswer(heartbeats_);
  if (request.path == "/readyz") return ReadyzAnswer(NotReady());
  http::HttpResponse response;
  const bool known = request.path == "/metrics";
  response.status = known ? 503 : 404;
  response.body = known ? "there are metrics when the start is over\n" : kNoSuchPage;
  return response;
}

}  // namespace railhead::daemon
