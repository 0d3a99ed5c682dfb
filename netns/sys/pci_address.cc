#include "netns/sys/pci_address.h"

#include <array>
#include <cstddef>
#include <cstdio>

#include "netns/base/text.h"

namespace railhead {
namespace {

std::optional<std::uint32_t> Digits(std::string_view text, std::uint32_t max) {
  for (const char c : text) {
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!hex) return std::nullopt;
  }
  const auto value = ParseHex(text);
  if (!value || *value > max) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

}  // namespace

std::optional<PciAddress> PciAddress::Parse(std::string_view text) {
  // What follows the domain has a fixed length: ":BB:DD.F".
  constexpr std::size_t kTail = 8;
  if (text.size() < 4 + kTail || text.size() > 8 + kTail) return std::nullopt;
  const std::size_t colon = text.size() - kTail;
  if (text[colon] != ':' || text[colon + 3] != ':' || text[colon + 6] != '.') return std::nullopt;
  const auto domain = Digits(text.substr(0, colon), UINT32_MAX);
  const auto bus = Digits(text.substr(colon + 1, 2), 0xff);
  const auto device = Digits(text.substr(colon + 4, 2), 0x1f);
  const auto function = Digits(text.substr(colon + 7, 1), 7);
  if (!domain || !bus || !device || !function) return std::nullopt;
  return PciAddress{*domain, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*device),
                    static_cast<std::uint8_t>(*function)};
}

std::string PciAddress::ToString() const {
  std::array<char, 24> buffer{};
  const int n =
      std::snprintf(buffer.data(), buffer.size(), "%04x:%02x:%02x.%x", domain, bus, device, function);
  return {buffer.data(), static_cast<std::size_t>(n)};
}

}  // namespace railhead
