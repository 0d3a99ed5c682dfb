#include "netns/base/mac_address.h"

#include <algorithm>
#include <cstdio>

#include "netns/base/text.h"

namespace railhead {

std::optional<MacAddress> MacAddress::Parse(std::string_view text) {
  const auto parts = Split(text, ':');
  if (parts.size() != 6) return std::nullopt;
  MacAddress mac;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto value = ParseHex(parts[i]);
    if (parts[i].size() != 2 || !value) return std::nullopt;
    mac.bytes[i] = static_cast<std::uint8_t>(*value);
  }
  return mac;
}

std::string MacAddress::ToString() const {
  std::array<char, 18> text{};
  (void)std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1], bytes[2],
                      bytes[3], bytes[4], bytes[5]);
  return text.data();
}

}  // namespace railhead
