// Counters: bytes only. Internal to netns/nl. Sources: netns/nl/counters.h.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "netns/nl/counters.h"
#include "netns/nl/message.h"

namespace railhead::nl {

Message GetTrafficMessage(const std::string& netdev, bool with_vfs);
// nullopt when it is not an RTM_NEWLINK with counters.
std::optional<PfTraffic> ParseTraffic(const Received& received);

Message GetRdmaCountersMessage(std::uint32_t device_index, std::uint32_t port);
NamedCounters ParseRdmaCounters(const Received& received);

}  // namespace railhead::nl
