#include "deviceplugin/daemon/service.h"

#include <algorithm>
#include <utility>

namespace railhead {
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
  return activity_.serving && std::all_of(resources.begin(), resources.end(),
                                          [](const auto& resource) { return resource->serving.load(); });
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

}  // namespace railhead
