// The address of a PCI function: DDDD:BB:DD.F, as sysfs spells it.
//
// This is also the device id that kubelet, Multus and the CNI plugin exchange.
// Domains may have more than four digits (those that Intel VMD and Hyper-V make up).
// Threads: value.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railhead {

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    // 0..31
  std::uint8_t function = 0;  // 0..7

  // The full form only: 4 to 8 digits, 2 digits, 2 digits, 1 digit; hexadecimal
  // of either case. nullopt for anything else.
  static std::optional<PciAddress> Parse(std::string_view text);
  // Lower case, the domain with at least four digits.
  [[nodiscard]] std::string ToString() const;

  auto operator<=>(const PciAddress&) const = default;
};

}  // namespace railhead
