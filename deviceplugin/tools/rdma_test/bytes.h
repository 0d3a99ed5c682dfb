// Numbers and texts as bytes, big endian, and back. Reading stops at the first thing that is not
// there: everything after it is zero or empty, and Whole() is false.
// Ownership: ByteReader points into the text given. Threads: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "netns/base/ip_address.h"

namespace railhead::rdmatest {

class ByteWriter {
 public:
  template <typename Number>
  void Put(Number number) {
    for (int shift = 8 * static_cast<int>(sizeof(Number)) - 8; shift >= 0; shift -= 8) {
      bytes_.push_back(static_cast<char>((static_cast<std::uint64_t>(number) >> shift) & 0xffU));
    }
  }
  // At most 65535 bytes of it.
  void PutText(std::string_view text) {
    text = text.substr(0, UINT16_MAX);
    Put(static_cast<std::uint16_t>(text.size()));
    bytes_.append(text);
  }
  // 16 bytes: IPv4 as ::ffff:a.b.c.d.
  void PutGid(const IpAddress& gid);
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Number Get() {
    std::uint64_t number = 0;
    for (const char byte : Take(sizeof(Number))) number = number << 8 | static_cast<std::uint8_t>(byte);
    return static_cast<Number>(number);
  }
  // One longer than `max` counts as not there.
  std::string GetText(std::size_t max);
  IpAddress GetGid();
  // Everything was there, and nothing is left.
  [[nodiscard]] bool Whole() const { return !short_ && rest_.empty(); }

 private:
  std::string_view Take(std::size_t size) {
    if (short_ || rest_.size() < size) {
      short_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool short_ = false;
};

}  // namespace railhead::rdmatest
