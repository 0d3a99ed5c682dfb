#include "deviceplugin/daemon/systemd_notifier.h"

#include <sys/time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "netns/base/text.h"

namespace railhead::daemon {
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

}  // namespace railhead::daemon
