// SystemdStatus: reports the state of the daemon to the service manager.
//
// READY=1 when all resources are served (kubelet may come later: STATUS says so). EXTEND_TIMEOUT_USEC during
// a long start. RELOADING=1 and READY=1 around a discovery that SIGHUP requested. WATCHDOG=1 as long as no
// service is stuck. STOPPING=1 at the end. Without a service manager it does nothing. Ownership: borrows
// watcher, registrar and supervisor. Threads: one, which calls Tick() every interval().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "deviceplugin/daemon/readiness.h"
#include "deviceplugin/daemon/systemd_notifier.h"
#include "deviceplugin/services/discovery/node_watcher.h"
#include "deviceplugin/services/kubelet/registrar.h"
#include "deviceplugin/support/service/supervisor.h"

namespace railhead::daemon {

class SystemdStatus {
 public:
  SystemdStatus(const SystemdNotifier::Environment& environment, const discovery::NodeWatcher& watcher,
                const kubelet::Registrar& registrar, const Supervisor& supervisor)
      : notify_(environment), watcher_(watcher), registrar_(registrar), supervisor_(supervisor) {}

  // nullopt: no service manager.
  [[nodiscard]] std::optional<std::chrono::milliseconds> interval() const;
  void Tick();
  // Call it before the discovery is requested.
  void Reloading();
  void Stopping();

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool ServesAll(const std::string& not_serving) const;

  SystemdNotifier notify_;
  const discovery::NodeWatcher& watcher_;
  const kubelet::Registrar& registrar_;
  const Supervisor& supervisor_;
  bool ready_ = false;
  Clock::time_point more_time_;               // when it was last asked for
  std::optional<std::uint64_t> reloaded_at_;  // number of discoveries that are done then
  std::string status_;
};

}  // namespace railhead::daemon
