// An Ethernet address. Value; compares; prints as 02:00:00:00:00:01.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railhead {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  // Six hexadecimal pairs separated by ':', either case.
  static std::optional<MacAddress> Parse(std::string_view text);
  [[nodiscard]] std::string ToString() const;
  [[nodiscard]] bool IsZero() const { return *this == MacAddress{}; }
  [[nodiscard]] bool IsMulticast() const { return (bytes[0] & 1U) != 0; }

  auto operator<=>(const MacAddress&) const = default;
};

}  // namespace railhead
