// Gateway: the router of a rail, by its address or by its place in the network of the node's pods. In JSON an
// address, or "first", "last" or "other".
//
// "first" is the address after the network's own. "last" is the last one that a host can have: IPv4 ends with
// the broadcast address, IPv6 does not. A /31 (RFC 3021) or /127 (RFC 6164) has two addresses: "first" and
// "last" are its second one, "other" is its first one. Threads: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "netns/base/addresses.h"
#include "netns/json/record.h"

namespace railhead {

struct Gateway {
  enum class Place : std::uint8_t { kAddress, kFirst, kLast, kOther };

  Place place = Place::kAddress;
  IpAddress address;  // of kAddress

  static std::optional<Gateway> Parse(std::string_view text);
  [[nodiscard]] std::string ToString() const;

  // nullopt: the network has no such address.
  [[nodiscard]] std::optional<IpAddress> In(const IpPrefix& network) const;

  bool operator==(const Gateway&) const = default;
};

template <>
struct TextForm<Gateway> : ParsedText<Gateway> {
  static constexpr const char* kWrong = R"(is neither an IP address nor "first", "last" or "other")";
};

}  // namespace railhead
