#include "netns/base/addresses.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "netns/base/text.h"

namespace railhead {

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  const std::string terminated(text);
  if (terminated.find('\0') != std::string::npos) return std::nullopt;
  IpAddress address;
  address.v6_ = text.find(':') != std::string_view::npos;
  if (::inet_pton(address.Family(), terminated.c_str(), address.bytes_.data()) != 1) return std::nullopt;
  return address;
}

IpAddress IpAddress::V4(std::uint32_t host_order) {
  IpAddress address;
  for (std::size_t i = 0; i < 4; ++i) {
    address.bytes_[i] = static_cast<std::uint8_t>(host_order >> (24 - 8 * i));
  }
  return address;
}

std::optional<IpAddress> IpAddress::FromBytes(const void* bytes, std::size_t size) {
  if (size != 4 && size != 16) return std::nullopt;
  IpAddress address;
  address.v6_ = size == 16;
  std::memcpy(address.bytes_.data(), bytes, size);
  return address;
}

int IpAddress::Family() const {
  return v6_ ? AF_INET6 : AF_INET;
}

std::uint32_t IpAddress::ToV4() const {
  if (v6_) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8) | bytes_[i];
  return value;
}

std::string IpAddress::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  (void)::inet_ntop(Family(), bytes_.data(), text.data(), text.size());
  return text.data();
}

bool IpAddress::IsUnspecified() const {
  return bytes_ == std::array<std::uint8_t, 16>{};
}

bool IpAddress::IsMulticast() const {
  return v6_ ? bytes_[0] == 0xff : (bytes_[0] & 0xf0U) == 0xe0;
}

bool IpAddress::IsLoopback() const {
  if (!v6_) return bytes_[0] == 127;
  IpAddress one;
  one.v6_ = true;
  one.bytes_[15] = 1;
  return *this == one;
}

bool IpAddress::IsLinkLocal() const {
  return v6_ ? bytes_[0] == 0xfe && (bytes_[1] & 0xc0U) == 0x80 : bytes_[0] == 169 && bytes_[1] == 254;
}

IpAddress IpAddress::Plus(std::uint64_t offset) const {
  IpAddress sum = *this;
  std::uint64_t carry = 0;
  for (std::size_t i = Size(); i-- > 0;) {
    const std::uint64_t digit = sum.bytes_[i] + (offset & 0xffU) + carry;
    sum.bytes_[i] = static_cast<std::uint8_t>(digit);
    carry = digit >> 8;
    offset >>= 8;
  }
  return sum;
}

std::optional<IpAddress> IpAddress::Previous() const {
  IpAddress previous = *this;
  for (std::size_t i = Size(); i-- > 0;) {
    if (previous.bytes_[i]-- != 0) return previous;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> IpAddress::Minus(const IpAddress& base) const {
  if (v6_ != base.v6_ || *this < base) return std::nullopt;
  std::array<std::uint8_t, 16> difference{};
  int borrow = 0;
  for (std::size_t i = Size(); i-- > 0;) {
    const int digit = bytes_[i] - base.bytes_[i] - borrow;
    difference[i] = static_cast<std::uint8_t>(digit);
    borrow = digit < 0 ? 1 : 0;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < Size(); ++i) {
    if (i + 8 < Size() && difference[i] != 0) return std::nullopt;
    value = (value << 8) | difference[i];
  }
  return value;
}

IpAddress IpAddress::SolicitedNode() const {
  IpAddress group;
  group.v6_ = true;
  group.bytes_ = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, bytes_[13], bytes_[14], bytes_[15]};
  return group;
}

IpAddress IpAddress::Masked(int prefix_length) const {
  IpAddress masked = *this;
  for (int bit = prefix_length; bit < Bits(); ++bit) {
    masked.bytes_[static_cast<std::size_t>(bit) / 8] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
  return masked;
}

IpAddress IpAddress::Filled(int prefix_length) const {
  IpAddress filled = *this;
  for (int bit = prefix_length; bit < Bits(); ++bit) {
    filled.bytes_[static_cast<std::size_t>(bit) / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
  }
  return filled;
}

std::optional<IpPrefix> IpPrefix::Parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = IpAddress::Parse(text.substr(0, slash));
  const auto length = ParseInt(text.substr(slash + 1));
  if (!address || !length || *length < 0 || *length > address->Bits()) return std::nullopt;
  return IpPrefix{*address, static_cast<int>(*length)};
}

std::string IpPrefix::ToString() const {
  return address.ToString() + "/" + std::to_string(length);
}

bool IpPrefix::Contains(const IpAddress& other) const {
  return other.IsV6() == address.IsV6() && other.Masked(length) == First();
}

bool IpPrefix::Contains(const IpPrefix& other) const {
  return other.length >= length && Contains(other.address);
}

Result<IpRange> IpRange::Parse(std::string_view text) {
  const auto invalid = [&](const char* why) {
    return Fail(ErrorCode::kInvalid, "'" + std::string(text) + "' " + why,
                "write ADDRESS, ADDRESS-ADDRESS or PREFIX/LENGTH, such as 10.0.0.10-10.0.0.99");
  };
  if (const auto prefix = IpPrefix::Parse(text)) return IpRange{prefix->First(), prefix->Last()};
  const auto dash = text.find('-');
  const auto first = IpAddress::Parse(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : IpAddress::Parse(text.substr(dash + 1));
  if (!first || !last) return invalid("is not an address, range or prefix");
  if (first->IsV4() != last->IsV4()) return invalid("mixes IPv4 and IPv6");
  if (*last < *first) return invalid("ends before it begins");
  return IpRange{*first, *last};
}

std::string IpRange::ToString() const {
  return first == last ? first.ToString() : first.ToString() + "-" + last.ToString();
}

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
