// Generic netlink messages of the family "devlink": bytes only. Internal to netns/nl.
// Source: include/uapi/linux/devlink.h, include/uapi/linux/genetlink.h, net/devlink/health.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead::nl {

// What the kernel gave the family at this boot.
struct DevlinkFamily {
  std::uint16_t id = 0;
  std::uint32_t events = 0;  // multicast group "config"; 0: there is none
};

Message GetDevlinkFamilyMessage();
Message GetHealthReporterMessage(std::uint16_t family, const std::string& address,
                                 const std::string& reporter);

std::optional<DevlinkFamily> ParseDevlinkFamily(const Received& received);

// A message about a PCI function's devlink instance.
struct DevlinkNews {
  std::string address;
  bool instance = false;  // the instance itself was made or removed
  std::string reporter;   // else: this health reporter,
  bool failed = false;    // which is in state error or not
};
// nullopt: about something else.
std::optional<DevlinkNews> ParseDevlinkNews(const Received& received);

}  // namespace railhead::nl
