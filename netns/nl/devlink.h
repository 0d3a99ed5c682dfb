// Devlink health reporters of PCI functions: whether the driver says that its device failed.
//
// A reporter is asked for once and then followed by the kernel's notifications. Asking
// takes the devlink instance's lock, which a driver holds for as long as it recovers a
// device (mlx5: up to a minute): who watches must not stand behind that.
// Source: Documentation/networking/devlink/devlink-health.rst, net/devlink/health.c.
// Ownership: owns two sockets, in the network namespace in which it was opened; devlink
// instances belong to one, usually the host's. Threads: one at a time. Needs no privilege.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "netns/base/result.h"

namespace railhead {

class DevlinkHealth {
 public:
  // kUnsupported: the kernel has no devlink.
  static Result<DevlinkHealth> Open();

  DevlinkHealth(DevlinkHealth&&) noexcept;
  DevlinkHealth& operator=(DevlinkHealth&&) noexcept;
  ~DevlinkHealth();

  // Takes in what was told since the last call. Cheap when there is nothing.
  Result<void> Refresh();
  // As of the last Refresh. False also when the function has no such reporter.
  Result<bool> HasFailed(const std::string& address, const std::string& reporter);

 private:
  struct State;
  explicit DevlinkHealth(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What a driver says of its device by devlink: which firmware and packages run on it.
//
// Asking takes the devlink instance's lock, which a driver holds for as long as it recovers a
// device: ask when something has changed, not by a clock.
// Source: Documentation/networking/devlink/devlink-info.rst, net/devlink/dev.c.
// Ownership: a socket for the time of the call, in the calling thread's network namespace;
// devlink instances belong to one, usually the host's. Threads: thread-safe. Needs no privilege.

// "fw.app.name" -> "ICE OS Default Package". Empty when the function has no devlink instance, or
// its driver says nothing. kUnsupported: the kernel has no devlink.
Result<std::map<std::string, std::string>> DevlinkRunningVersions(const std::string& address);

}  // namespace railhead
