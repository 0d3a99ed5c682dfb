#include "deviceplugin/daemon/systemd.h"

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

SystemdStatus::SystemdStatus(const SystemdNotifier::Environment& environment, const Activity& activity,
                             Resources resources)
    : notify_(environment), activity_(activity), resources_(std::move(resources)) {}

std::optional<std::chrono::milliseconds> SystemdStatus::interval() const {
  if (!notify_.IsConnected()) return std::nullopt;
  if (!ready_ || reloaded_at_) return kWhileChanging;
  const auto watchdog = notify_.watchdog_interval();
  if (!watchdog) return kWhileCalm;
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(*watchdog);
  return std::clamp(whole, std::chrono::milliseconds(1), kWhileCalm);
}

bool SystemdStatus::ServesAll(const ResourceActivities& resources) const {
  return activity_.serving &&
         std::ranges::all_of(resources, [](const auto& resource) { return resource->serving.load(); });
}

void SystemdStatus::Tick() {
  if (!notify_.IsConnected()) return;
  const ResourceActivities resources = resources_();
  // Before the status, so that READY=1 does not come with one of the time before it.
  const bool serves_all = ServesAll(resources);
  std::string status = StatusLine(ReadinessOf(activity_, resources));
  if (!activity_.node.config_ok) status += "; the configuration is invalid, the last valid one stays in use";
  const bool changed = std::exchange(status_, status) != status;
  if (!ready_ && serves_all) {
    ready_ = true;
    notify_.Ready(status);
  } else if (reloaded_at_ && activity_.node.discoveries_done.value() >= *reloaded_at_) {
    reloaded_at_.reset();
    notify_.Ready(status);
  } else if (changed) {
    notify_.Status(status);
  }
  if (notify_.watchdog_interval() && StuckThreads(activity_.heartbeats).empty()) notify_.Alive();
}

void SystemdStatus::Reloading() {
  if (!notify_.IsConnected() || !ready_) return;
  // A running discovery may have read the old configuration.
  reloaded_at_ = activity_.node.discoveries_started.value() + 1;
  notify_.Reloading();
}

void SystemdStatus::Stopping() {
  notify_.Stopping();
}

namespace {

std::string RemoveVariable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  (void)::unsetenv(name);
  return text;
}

// In the protocol a newline ends a variable, so a value has one line.
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
std::optional<std::chrono::microseconds> WatchdogOf(const SystemdNotifier::Environment& environment) {
  const auto usec = ParseInt(environment.watchdog_usec);
  if (!usec || *usec < 2) return std::nullopt;
  const bool other =
      !environment.watchdog_pid.empty() && environment.watchdog_pid != std::to_string(::getpid());
  if (other) return std::nullopt;
  return std::chrono::microseconds(*usec / 2);
}

}  // namespace

SystemdNotifier::Environment SystemdNotifier::TakeEnvironment() {
  return {RemoveVariable("NOTIFY_SOCKET"), RemoveVariable("WATCHDOG_USEC"), RemoveVariable("WATCHDOG_PID")};
}

SystemdNotifier::SystemdNotifier(const Environment& environment) {
  const std::string& name = environment.socket;
  if (name.empty() || name.size() >= sizeof address_.sun_path || (name[0] != '/' && name[0] != '@')) return;
  address_.sun_family = AF_UNIX;
  std::memcpy(address_.sun_path, name.data(), name.size());
  if (name[0] == '@') address_.sun_path[0] = '\0';
  length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  socket_.Reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) return;
  // Wait for a busy manager, but not for ever.
  constexpr timeval kPatience{2, 0};
  (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  watchdog_ = WatchdogOf(environment);
}

void SystemdNotifier::Send(std::string_view message) const {
  if (!socket_.valid()) return;
  (void)::sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address_), length_);
}

void SystemdNotifier::Ready(std::string_view status) {
  Send("READY=1\nSTATUS=" + OneLine(status));
}

void SystemdNotifier::Status(std::string_view status) {
  Send("STATUS=" + OneLine(status));
}

void SystemdNotifier::Reloading() {
  Send("RELOADING=1\nMONOTONIC_USEC=" + MonotonicUsec());
}

void SystemdNotifier::Stopping() {
  Send("STOPPING=1");
}

void SystemdNotifier::Alive() {
  Send("WATCHDOG=1");
}

void SystemdNotifier::NeedMoreTime(std::chrono::microseconds more, std::string_view status) {
  Send("EXTEND_TIMEOUT_USEC=" + std::to_string(more.count()) + "\nSTATUS=" + OneLine(status));
}

StartupResponder::StartupResponder(const SystemdNotifier::Environment& environment, Pages& pages,
                                   const sigset_t& signals, Log* log)
    : pages_(pages), signals_(signals), log_(log), notify_(environment) {}

provision::ApplyWatch StartupResponder::Watch() {
  return {[this](const std::string& what) { ReportProgress(what); }, &stop_};
}

void StartupResponder::ReportProgress(const std::string& what) {
  heartbeats_.provisioner.Within(kLongestStep);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = progress_.empty();
    progress_ = what;
  }
  Report();
  if (first) Begin();
}

void StartupResponder::Begin() {
  const auto served = pages_.Serve([this](const http::HttpRequest& request) { return Answer(request); });
  if (!served) log_->Warning("serving metrics and probes failed", served.error());
  thread_ = std::thread([this] { AwaitSignals(); });
}

// SIGHUP has no effect here: the configuration is read after the start. End() sends one to this thread.
void StartupResponder::AwaitSignals() {
  while (!ended_) {
    constexpr timespec kLimit{kReportEvery.count(), 0};
    const int signal = ::sigtimedwait(&signals_, nullptr, &kLimit);
    if (signal == SIGTERM || signal == SIGINT) {
      signal_ = signal;
      stop_ = true;
      notify_.Stopping();
    }
    Report();
  }
}

int StartupResponder::End() {
  ended_ = true;
  if (thread_.joinable()) {
    (void)::pthread_kill(thread_.native_handle(), SIGHUP);
    thread_.join();
  }
  heartbeats_.provisioner.SetIdle();
  return signal_;
}

void StartupResponder::Report() {
  if (!notify_.IsConnected() || !StuckThreads(heartbeats_).empty()) return;
  notify_.NeedMoreTime(kMoreTime, StatusLine(NotReady()));
}

Readiness StartupResponder::NotReady() {
  const std::lock_guard lock(mutex_);
  Readiness readiness;
  readiness.missing.push_back({"", progress_});
  return readiness;
}

http::HttpResponse StartupResponder::Answer(const http::HttpRequest& request) {
  if (request.path == "/healthz") return HealthzAnswer(heartbeats_);
  if (request.path == "/readyz") return ReadyzAnswer(NotReady());
  http::HttpResponse response;
  const bool known = request.path == "/metrics";
  response.status = known ? 503 : 404;
  response.body = known ? "metrics are available after the start\n" : kNoSuchPage;
  return response;
}

}  // namespace railhead::daemon
