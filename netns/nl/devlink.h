// Devlink health reporters of PCI functions: whether the driver says that its device failed.
//
// This asks for a reporter once and then follows the kernel's notifications. Asking takes the devlink
// instance's lock. A driver holds that lock for as long as it recovers a device (mlx5: up to a minute). A
// monitor must not wait for it.
// Source: Documentation/networking/devlink/devlink-health.rst, net/devlink/health.c.
// Ownership: owns two sockets, in the network namespace in which it was opened; devlink instances belong to
// one, usually the host's. Threads: one at a time. Needs no privilege.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "netns/base/result.h"
#include "netns/nl/socket.h"

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

// A driver's information about its device by devlink: which firmware and packages run on it.
//
// Asking takes the devlink instance's lock, which a driver holds for as long as it recovers a device. So ask
// when something has changed, not by a clock.
// Source: Documentation/networking/devlink/devlink-info.rst, net/devlink/dev.c.
// Ownership: a socket for the time of the call, in the calling thread's network namespace; devlink instances
// belong to one, usually the host's. Threads: thread-safe. Needs no privilege.

// "fw.app.name" -> "ICE OS Default Package". Empty when the function has no devlink instance, or
// its driver says nothing. kUnsupported: the kernel has no devlink.
Result<std::map<std::string, std::string>> DevlinkRunningVersions(const std::string& address);

}  // namespace railhead

namespace railhead::nl {

// Generic netlink messages of the family "devlink": bytes only, but
// for FindDevlink(). Internal to netns/nl.
// Source: include/uapi/linux/devlink.h, include/uapi/linux/genetlink.h, net/devlink/health.c,
// Documentation/networking/devlink/devlink-info.rst.
// Threads: as the socket; the others are pure functions. Parsers take any bytes.

// What the kernel gave the family at this boot.
struct DevlinkFamily {
  std::uint16_t id = 0;
  std::uint32_t events = 0;  // multicast group "config"; 0: absent
};

Message GetDevlinkFamilyMessage();
Message GetHealthReporterMessage(std::uint16_t family, const std::string& address,
                                 const std::string& reporter);

std::optional<DevlinkFamily> ParseDevlinkFamily(const Received& received);
// Asks the kernel. kUnsupported: it has no devlink. `what`: the caller's action, for errors.
Result<DevlinkFamily> FindDevlink(Socket& socket, const std::string& what);

// A message about a PCI function's devlink instance.
struct DevlinkNews {
  std::string address;
  bool instance = false;  // the instance itself was made or removed
  std::string reporter;   // else: this health reporter,
  bool failed = false;    // which is in state error or not
};
// nullopt: about something else.
std::optional<DevlinkNews> ParseDevlinkNews(const Received& received);

Message GetDevlinkInfoMessage(std::uint16_t family, const std::string& address);
// The versions that run on the device, by the driver's names: "fw.app.name". Empty: the answer has none.
std::map<std::string, std::string> ParseRunningVersions(const Received& received);

}  // namespace railhead::nl
