#include "deviceplugin/daemon/systemd_status.h"

#include <algorithm>
#include <utility>

namespace railhead::daemon {
namespace {

constexpr std::chrono::milliseconds kWhileChanging{100};
constexpr std::chrono::milliseconds kWhileCalm{5'000};
// Of a long start: it asks for kMoreTime every kAskEvery.
constexpr std::chrono::seconds kAskEvery{1};
constexpr std::chrono::seconds kMoreTime{120};

}  // namespace

std::optional<std::chrono::milliseconds> SystemdStatus::interval() const {
  if (!notify_.IsConnected()) return std::nullopt;
  if (!ready_ || reloaded_at_) return kWhileChanging;
  const auto watchdog = notify_.watchdog_interval();
  if (!watchdog) return kWhileCalm;
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(*watchdog);
  return std::clamp(whole, std::chrono::milliseconds(1), kWhileCalm);
}

bool SystemdStatus::ServesAll(const std::string& not_serving) const {
  return not_serving.empty() && std::ranges::all_of(registrar_.Activities(), [](const auto& resource) {
           return resource->serving.load();
         });
}

void SystemdStatus::Tick() {
  if (!notify_.IsConnected()) return;
  const bool stuck = !supervisor_.FindStuck().empty();
  const auto start = watcher_.start().Get();
  const std::string not_serving = start->empty() ? registrar_.NotServing() : *start;
  // Before the status, so that READY=1 does not come with one of the time before it.
  const bool serves_all = ServesAll(not_serving);
  std::string status =
      StatusLine(ReadinessOf(not_serving, watcher_.uevents_connected(), registrar_.Activities()));
  if (!watcher_.config_ok()) status += "; the configuration is invalid, the last valid one stays in use";
  const bool changed = std::exchange(status_, status) != status;
  const auto now = Clock::now();
  if (!start->empty() && !stuck && (changed || now >= more_time_ + kAskEvery)) {
    more_time_ = now;
    notify_.NeedMoreTime(kMoreTime, status);
  } else if (!ready_ && serves_all) {
    ready_ = true;
    notify_.Ready(status);
  } else if (reloaded_at_ && watcher_.discoveries_done() >= *reloaded_at_) {
    reloaded_at_.reset();
    notify_.Ready(status);
  } else if (changed) {
    notify_.Status(status);
  }
  if (notify_.watchdog_interval() && !stuck) notify_.Alive();
}

void SystemdStatus::Reloading() {
  if (!notify_.IsConnected() || !ready_) return;
  // A running discovery may have read the old configuration.
  reloaded_at_ = watcher_.discoveries_started() + 1;
  notify_.Reloading();
}

void SystemdStatus::Stopping() {
  notify_.Stopping();
}

}  // namespace railhead::daemon
