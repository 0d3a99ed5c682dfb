// SystemdNotifier: sends the state of this process to the service manager that started it.
//
// Sends a datagram of a few words to the socket that $NOTIFY_SOCKET names. Without that variable it does
// nothing. Written here, since Debian's libsystemd has no static archive.
// Source: sd_notify(3), systemd.service(5) (Type=notify, WatchdogSec=).
// Ownership: owns its socket. Threads: one. Errors: none; a message that cannot be sent is lost, and the
// service manager has its own limits.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "netns/base/unique_fd.h"

namespace railhead::daemon {

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

}  // namespace railhead::daemon
