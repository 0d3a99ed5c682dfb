// Service: what the service manager hears, out of what the daemon does.
//
// READY=1 when all resources are served (kubelet may come later: STATUS says how far it is),
// RELOADING=1 and READY=1 around a look that SIGHUP has asked for, WATCHDOG=1 as long as no
// part hangs, STOPPING=1 at the end. Without a service manager it does nothing.
// Ownership: borrows the activity. Threads: one, which calls Tick() every interval().
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/pages.h"
#include "netns/base/unique_fd.h"

namespace railhead {

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

}  // namespace railhead
