// How the address store writes numbers and texts: big-endian, so that bytes sort as
// values do; a text behind its length.
// Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace railhead::bytes {

inline constexpr std::size_t kNumberSize = 8;

inline std::string Number(std::uint64_t value) {
  std::string number(kNumberSize, '\0');
  for (std::size_t i = kNumberSize; i-- > 0; value >>= 8) number[i] = static_cast<char>(value & 0xffU);
  return number;
}

inline std::string Text(std::string_view text) {
  return Number(text.size()).append(text);
}

// Takes values off the front; Done() is false once something was missing.
class Reader {
 public:
  explicit Reader(std::string_view all) : rest_(all) {}

  std::uint64_t Number() {
    std::uint64_t value = 0;
    for (const char byte : Take(kNumberSize)) value = (value << 8) | static_cast<unsigned char>(byte);
    return value;
  }
  std::string Text() { return std::string(Take(Number())); }
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
