// DCB netlink messages: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/dcbnl.h, net/dcb/dcbnl.c (dcbnl_ieee_fill).
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <optional>
#include <string>

#include "netns/nl/dcb.h"
#include "netns/nl/message.h"

namespace railhead::nl {

Message GetDcbMessage(const std::string& netdev);
// nullopt: not an answer to it.
std::optional<DcbState> ParseDcb(const Received& received);

}  // namespace railhead::nl
