// Notify: tells the service manager that started this process how it is.
//
// A datagram of a few words to the socket that $NOTIFY_SOCKET names, or nothing where there
// is none. Written out here since Debian's libsystemd has no static archive.
// Source: sd_notify(3), systemd.service(5) (Type=notify, WatchdogSec=).
// Ownership: owns its socket. Threads: one. Errors: none that anybody could act on; a message
// that cannot be sent is lost, and the service manager has its own limits.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "netns/base/unique_fd.h"

namespace railhead {

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

}  // namespace railhead
