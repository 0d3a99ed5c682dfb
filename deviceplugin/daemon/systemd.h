// SystemdStatus: reports the state of the daemon to the service manager.
//
// READY=1 when all resources are served (kubelet may come later: STATUS says so). RELOADING=1 and READY=1
// around a discovery that SIGHUP requested. WATCHDOG=1 as long as no thread is stuck. STOPPING=1 at the end.
// Without a service manager it does nothing.
// Ownership: borrows the activity. Threads: one, which calls Tick() every interval().
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/pages.h"
#include "deviceplugin/services/provision/provisioner.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/worker/worker.h"
#include "netns/base/unique_fd.h"

namespace railhead::daemon {

// SystemdNotifier: sends the state of this process to the service manager that started it.
//
// Sends a datagram of a few words to the socket that $NOTIFY_SOCKET names. Without that variable it does
// nothing. Written here, since Debian's libsystemd has no static archive.
// Source: sd_notify(3), systemd.service(5) (Type=notify, WatchdogSec=).
// Ownership: owns its socket. Threads: one. Errors: none; a message that cannot be sent is lost, and the
// service manager has its own limits.

class SystemdNotifier {
 public:
  struct Environment {
    std::string socket;         // $NOTIFY_SOCKET: a path, or @NAME in the abstract namespace
    std::string watchdog_usec;  // $WATCHDOG_USEC
    std::string watchdog_pid;   // $WATCHDOG_PID
  };
  // Removes the variables from the environment: programs that this one starts are not a service.
  // Call it before there are threads.
  static Environment TakeEnvironment();

  explicit SystemdNotifier(const Environment& environment);

  void Ready(std::string_view status);
  void Status(std::string_view status);
  void Reloading();
  void Stopping();
  void Alive();
  // The present start or stop may take so much longer from now on.
  void NeedMoreTime(std::chrono::microseconds more, std::string_view status);

  // Whether there is a service manager.
  [[nodiscard]] bool IsConnected() const { return socket_.valid(); }
  // How often to send WATCHDOG=1; nullopt: the service manager has no watchdog.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog_interval() const { return watchdog_; }

 private:
  void Send(std::string_view message) const;

  UniqueFd socket_;
  sockaddr_un address_{};
  socklen_t length_ = 0;
  std::optional<std::chrono::microseconds> watchdog_;
};

class SystemdStatus {
 public:
  using Resources = std::function<ResourceActivities()>;

  SystemdStatus(const SystemdNotifier::Environment& environment, const Activity& activity,
                Resources resources);

  // nullopt: no service manager.
  [[nodiscard]] std::optional<std::chrono::milliseconds> interval() const;
  void Tick();
  // Call it before the discovery is requested.
  void Reloading();
  void Stopping();

 private:
  [[nodiscard]] bool ServesAll(const ResourceActivities& resources) const;

  SystemdNotifier notify_;
  const Activity& activity_;
  const Resources resources_;
  bool ready_ = false;
  std::optional<std::uint64_t> reloaded_at_;  // number of discoveries that are done then
  std::string status_;
};

// StartupResponder: answers for railheadd during a long start, before there is a Daemon.
//
// From the first ReportProgress() on, probes get the answer that railheadd is alive, and its progress as the
// reason why it is not ready. The service manager gets the same and grants more time, as long as the start is
// not stuck. SIGTERM and SIGINT set the watch's stop. A short start is not affected.
// Ownership: borrows pages, which may call it until they have another handler. Threads: ReportProgress()
// and End() on one; a thread of its own waits for signals, which are blocked in all.
// Errors: of the pages; they do not stop the start.

class StartupResponder {
 public:
  StartupResponder(const SystemdNotifier::Environment& environment, Pages& pages, const sigset_t& signals,
                   Log* log);
  StartupResponder(const StartupResponder&) = delete;
  StartupResponder& operator=(const StartupResponder&) = delete;
  ~StartupResponder() { (void)End(); }

  // Reports to this object, and is stopped by it.
  provision::ApplyWatch Watch();
  // The caller handles signals again. Returns the signal that came during the start and ends the daemon; 0:
  // none.
  int End();

 private:
  // One step is one PF: locks that others hold, its drivers, and the undo. A thread without progress for so
  // long is stuck.
  static constexpr std::chrono::minutes kLongestStep{20};
  static constexpr std::chrono::seconds kReportEvery{1};
  // Until the next report: for the time after a long start, too.
  static constexpr std::chrono::seconds kMoreTime{120};

  void ReportProgress(const std::string& what);
  void Begin();
  void AwaitSignals();
  void Report();
  [[nodiscard]] Readiness NotReady();
  http::HttpResponse Answer(const http::HttpRequest& request);

  Pages& pages_;
  const sigset_t signals_;
  Log* log_;
  SystemdNotifier notify_;
  Heartbeats heartbeats_;
  std::mutex mutex_;
  std::string progress_;  // "": none yet
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> signal_{0};
  std::thread thread_;
};

}  // namespace railhead::daemon
