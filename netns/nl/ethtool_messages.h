// Generic netlink messages of the family "ethtool": bytes only. Internal to netns/nl.
//
// One pair of commands for each setting, with the same attributes in the answer to the one and in the other.
// Source: include/uapi/linux/ethtool_netlink.h, Documentation/networking/ethtool-netlink.rst,
// net/ethtool/*.c. Threads: pure functions. Parsers take any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "netns/nl/device_state.h"
#include "netns/nl/message.h"

namespace railhead::nl {

// Those that have commands.
std::span<const DeviceSource> EthtoolSources();

Message GetEthtoolFamilyMessage();
// What the kernel calls the family at this boot; nullopt: no answer to it.
std::optional<std::uint16_t> ParseEthtoolFamily(const Received& received);

Message GetEthtoolMessage(std::uint16_t family, DeviceSource source, int index);
// Stores what the answer has of the source's fields.
void ParseEthtool(const Received& received, DeviceSource source, DeviceState& state);
// Of an answer about features: those that may be changed, as a value of "features.wanted".
std::string ParseChangeableFeatures(const Received& received);

// Sets these fields, all of the one source. `mask`: as PutField(); for features it is needed, since the
// kernel refuses a set that has features which nobody can change.
Message SetEthtoolMessage(std::uint16_t family, DeviceSource source, int index, const DeviceState& values,
                          std::string_view mask = {});

}  // namespace railhead::nl
