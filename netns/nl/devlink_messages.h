// Generic netlink messages of the family "devlink": bytes only, but
// for FindDevlink(). Internal to netns/nl.
// Source: include/uapi/linux/devlink.h, include/uapi/linux/genetlink.h, net/devlink/health.c,
// Documentation/networking/devlink/devlink-info.rst.
// Threads: as the socket; the others are pure functions. Parsers take any bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "netns/base/result.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead::nl {

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
