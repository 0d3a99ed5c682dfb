// Service: what the service manager hears, out of what the daemon does.
//
// READY=1 when all resources are served (kubelet may come later: STATUS says how far it is),
// RELOADING=1 and READY=1 around a look that SIGHUP has asked for, WATCHDOG=1 as long as no
// part hangs, STOPPING=1 at the end. Without a service manager it does nothing.
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

// Notify: tells the service manager that started this process how it is.
//
// A datagram of a few words to the socket that $NOTIFY_SOCKET names, or nothing where there
// is none. Written out here since Debian's libsystemd has no static archive.
// Source: sd_notify(3), systemd.service(5) (Type=notify, WatchdogSec=).
// Ownership: owns its socket. Threads: one. Errors: none that anybody could act on; a message
// that cannot be sent is lost, and the service manager has its own limits.

class Notify {
 public:
  struct Environment {
    std::string socket;         // $NOTIFY_SOCKET: a path, or @NAME in the abstract namespace
    std::string watchdog_usec;  // $WATCHDOG_USEC
    std::string watchdog_pid;   // $WATCHDOG_PID
  };
  // Takes the variables out of the environment: programs that this one starts are no service.
  // Before there are threads.
  static Environment TakeEnvironment();

  explicit Notify(const Environment& environment);

  void Ready(std::string_view status);
  void Status(std::string_view status);
  void Reloading();
  void Stopping();
  void Alive();
  // The start, or the end, that is under way may take so much longer from now on.
  void NeedMoreTime(std::chrono::microseconds more, std::string_view status);

  // Whether there is anybody to tell.
  [[nodiscard]] bool IsHeard() const { return socket_.valid(); }
  // nullopt: nobody waits for a sign of life; else how often to give one.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog_interval() const { return watchdog_; }

 private:
  void Send(std::string_view message) const;

  UniqueFd socket_;
  sockaddr_un address_{};
  socklen_t length_ = 0;
  std::optional<std::chrono::microseconds> watchdog_;
};

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

// Starting: answers for railheadd while something at its start takes long, before there is a
// Daemon.
//
// From the first Doing() on probes hear that it is alive and what it does instead of being ready,
// the service manager hears the same and gives it more time, as long as it is not stuck, and
// SIGTERM and SIGINT set the watch's stop. A start that has nothing long to do is not touched.
// Ownership: borrows pages, which may ask it until they have another handler. Threads: Doing()
// and End() on one; a thread of its own waits for signals, which are blocked in all.
// Errors: of the pages; they are no reason not to start.

class Starting {
 public:
  Starting(const Notify::Environment& environment, Pages& pages, const sigset_t& signals, Log* log);
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  ~Starting() { (void)End(); }

  // What tells this object, and is stopped by it.
  provision::ApplyWatch Watch();
  // Signals are the caller's again. The one that has come meanwhile and ends the daemon; 0: none.
  int End();

 private:
  // Of one PF: locks that others hold, its drivers, and the undo of all of that. A thread that
  // has said nothing new for so long hangs.
  static constexpr std::chrono::minutes kLongestStep{20};
  static constexpr std::chrono::seconds kTellEvery{1};
  // Until the next word: for what follows a start that took long, too.
  static constexpr std::chrono::seconds kMoreTime{120};

  void Doing(const std::string& what);
  void Begin();
  void AwaitSignals();
  void Tell();
  [[nodiscard]] Readiness NotReady();
  http::HttpResponse Answer(const http::HttpRequest& request);

  Pages& pages_;
  const sigset_t signals_;
  Log* log_;
  Notify notify_;
  Heartbeats heartbeats_;
  std::mutex mutex_;
  std::string doing_;  // "": nothing yet
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> signal_{0};
  std::thread thread_;
};

}  // namespace railhead::daemon
