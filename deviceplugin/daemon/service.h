// Service: what the service manager hears, out of what the daemon does.
//
// READY=1 when all resources are served (kubelet may come later: STATUS says how far it is),
// RELOADING=1 and READY=1 around a look that SIGHUP has asked for, WATCHDOG=1 as long as no
// part hangs, STOPPING=1 at the end. Without a service manager it does nothing.
// Ownership: borrows the activity. Threads: one, which calls Tick() every interval().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/notify.h"
#include "deviceplugin/daemon/pages.h"

namespace railhead {

class Service {
 public:
  using Resources = std::function<ResourceActivities()>;

  Service(const Notify::Environment& environment, const Activity& activity, Resources resources);

  // nullopt: there is nobody to tell.
  [[nodiscard]] std::optional<std::chrono::milliseconds> interval() const;
  void Tick();
  // Before the look is asked for.
  void Reloading();
  void Stopping();

 private:
  [[nodiscard]] bool ServesAll(const ResourceActivities& resources) const;

  Notify notify_;
  const Activity& activity_;
  const Resources resources_;
  bool ready_ = false;
  std::optional<std::uint64_t> reloaded_at_;  // how many looks are over then
  std::string status_;
};

}  // namespace railhead
