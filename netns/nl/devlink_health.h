// Devlink health reporters of PCI functions: whether the driver says that its device failed.
//
// This asks for a reporter once and then follows the kernel's notifications. Asking takes the devlink
// instance's lock. A driver holds that lock for as long as it recovers a device (mlx5: up to a minute). A
// monitor must not wait for it.
// Source: Documentation/networking/devlink/devlink-health.rst, net/devlink/health.c.
// Ownership: owns two sockets, in the network namespace in which it was opened; devlink instances belong to
// one, usually the host's. Threads: one at a time. Needs no privilege.
#pragma once

#include <memory>
#include <string>

#include "netns/base/result.h"

namespace railhead {

class DevlinkHealth {
 public:
  // kUnsupported: the kernel has no devlink.
  static Result<DevlinkHealth> Open();

  DevlinkHealth(DevlinkHealth&&) noexcept;
  DevlinkHealth& operator=(DevlinkHealth&&) noexcept;
  ~DevlinkHealth();

  // Reads the notifications since the last call. Cheap when none has come.
  Result<void> Refresh();
  // As of the last Refresh. False also when the function has no such reporter.
  Result<bool> HasFailed(const std::string& address, const std::string& reporter);

 private:
  struct State;
  explicit DevlinkHealth(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace railhead
