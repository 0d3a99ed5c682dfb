// IP addresses, prefixes and ranges of both families as values.
//
// IpAddress keeps 4 or 16 bytes in network order. Arithmetic is on the address
// as one unsigned number; Plus() wraps within the family. IpPrefix keeps the
// address as given (host bits included): 10.0.0.7/24 is an interface address,
// Network() is 10.0.0.0/24.
// Threads: values.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "netns/base/result.h"

namespace railhead {

class IpAddress {
 public:
  // 0.0.0.0
  IpAddress() = default;

  // "10.0.0.1" or "fd00::1", as inet_pton takes them.
  static std::optional<IpAddress> Parse(std::string_view text);
  static IpAddress V4(std::uint32_t host_order);
  // `bytes` is 4 or 16 bytes in network order.
  static std::optional<IpAddress> FromBytes(const void* bytes, std::size_t size);

  [[nodiscard]] bool IsV4() const { return !v6_; }
  [[nodiscard]] bool IsV6() const { return v6_; }
  [[nodiscard]] int Family() const;  // AF_INET or AF_INET6
  [[nodiscard]] int Bits() const { return v6_ ? 128 : 32; }
  [[nodiscard]] std::size_t Size() const { return v6_ ? 16 : 4; }
  // Size() bytes in network order.
  [[nodiscard]] const std::uint8_t* Data() const { return bytes_.data(); }
  [[nodiscard]] std::uint32_t ToV4() const;  // host order; 0 for IPv6
  [[nodiscard]] std::string ToString() const;

  [[nodiscard]] bool IsUnspecified() const;
  [[nodiscard]] bool IsMulticast() const;
  [[nodiscard]] bool IsLoopback() const;
  [[nodiscard]] bool IsLinkLocal() const;

  // This address plus `offset`, modulo 2^Bits().
  [[nodiscard]] IpAddress Plus(std::uint64_t offset) const;
  // The address below; nullopt for the lowest of the family.
  [[nodiscard]] std::optional<IpAddress> Previous() const;
  // This minus `base`, or nullopt when it is below `base`, does not fit 64 bits
  // or is of the other family.
  [[nodiscard]] std::optional<std::uint64_t> Minus(const IpAddress& base) const;
  // The solicited-node multicast address of an IPv6 address (RFC 4291 section 2.7.1).
  [[nodiscard]] IpAddress SolicitedNode() const;
  // Host bits below `prefix_length` cleared, or set.
  [[nodiscard]] IpAddress Masked(int prefix_length) const;
  [[nodiscard]] IpAddress Filled(int prefix_length) const;

  // IPv4 before IPv6, then by number.
  auto operator<=>(const IpAddress&) const = default;

 private:
  bool v6_ = false;
  std::array<std::uint8_t, 16> bytes_{};
};

struct IpPrefix {
  IpAddress address;
  int length = 0;

  // "10.0.0.7/24"; the length must be there.
  static std::optional<IpPrefix> Parse(std::string_view text);
  // /32 or /128
  static IpPrefix Host(const IpAddress& address) { return {address, address.Bits()}; }

  [[nodiscard]] std::string ToString() const;
  [[nodiscard]] IpPrefix Network() const { return {address.Masked(length), length}; }
  [[nodiscard]] IpAddress First() const { return address.Masked(length); }
  [[nodiscard]] IpAddress Last() const { return address.Filled(length); }
  [[nodiscard]] bool Contains(const IpAddress& other) const;
  [[nodiscard]] bool Contains(const IpPrefix& other) const;
  [[nodiscard]] bool Overlaps(const IpPrefix& other) const {
    return Contains(other) || other.Contains(*this);
  }

  auto operator<=>(const IpPrefix&) const = default;
};

// Both ends included, of one family, the first not above the last.
struct IpRange {
  IpAddress first;
  IpAddress last;

  // "10.0.0.1-10.0.0.9", "10.0.0.1" or "10.0.0.0/28" (the whole prefix). Errors: kInvalid, with the way out.
  static Result<IpRange> Parse(std::string_view text);

  // A single address stands by itself.
  [[nodiscard]] std::string ToString() const;
  [[nodiscard]] bool Contains(const IpAddress& address) const { return first <= address && address <= last; }
  bool operator==(const IpRange&) const = default;
};

// An Ethernet address. Value; compares; prints as 02:00:00:00:00:01.

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
