// Numbers, texts and addresses as bytes, and back: what wire messages and the address store are made of.
//
// Numbers are big-endian, so bytes sort as values do. A text stands behind its length. How long a number or a
// length is belongs to the format, so every caller names the type; the address store has 64 bits everywhere.
// Reading past the end gives zeros and empty texts, and Done() is false from then on.
// Ownership: Reader points into the text given. Errors: none but Done(). Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "netns/base/addresses.h"

namespace railhead::bytes {

class Writer {
 public:
  // As many bytes as the type has.
  template <typename Integer, typename = std::enable_if_t<std::is_integral_v<Integer>>>
  Writer& Put(Integer number) {
    const auto value = static_cast<std::uint64_t>(number);
    for (std::size_t left = sizeof(Integer); left-- > 0;)
      bytes_.push_back(static_cast<char>((value >> (8 * left)) & 0xffU));
    return *this;
  }
  // Truncated to the length that a Size can count.
  template <typename Size>
  Writer& PutText(std::string_view text) {
    text = text.substr(0, std::numeric_limits<Size>::max());
    Put(static_cast<Size>(text.size()));
    return PutRaw(text);
  }
  // Without a length.
  Writer& PutRaw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  Writer& PutRaw(const IpAddress& address) {
    bytes_.append(address.Data(), address.Data() + address.Size());
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

inline std::string Number(std::uint64_t value) {
  return Writer().Put(value).bytes();
}
inline std::string Text(std::string_view text) {
  return Writer().PutText<std::uint64_t>(text).bytes();
}

// Takes values off the front.
class Reader {
 public:
  explicit Reader(std::string_view all) : rest_(all) {}

  template <typename Integer = std::uint64_t>
  Integer Number() {
    std::uint64_t value = 0;
    for (const char byte : Take(sizeof(Integer))) value = (value << 8U) | static_cast<unsigned char>(byte);
    return static_cast<Integer>(value);
  }
  // A text longer than `max` counts as absent.
  template <typename Size = std::uint64_t>
  std::string Text(std::size_t max = std::string::npos) {
    const auto size = Number<Size>();
    return std::string(Take(size <= max ? size : std::string::npos));
  }
  // Of 4 or 16 bytes; without family when they are not there.
  IpAddress Address(std::size_t size) {
    const std::string_view taken = Take(size);
    return IpAddress::FromBytes(taken.data(), taken.size()).value_or(IpAddress());
  }
  std::string_view Take(std::uint64_t size) {
    if (size > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view Rest() { return std::exchange(rest_, {}); }
  // Everything was there and nothing is left.
  [[nodiscard]] bool Done() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace railhead::bytes
