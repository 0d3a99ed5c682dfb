// Cells and lines of the tables.
// Threads: pure.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace railhead::bench {

// As printf, up to 255 characters.
template <typename... Values>
std::string Text(const char* format, Values... values) {
  std::array<char, 256> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

}  // namespace railhead::bench
