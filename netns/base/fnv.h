// FNV-1a (draft-eastlake-fnv): hashes that name files, slots, labels and MAC addresses.
//
// The value of a text never changes. Programs of different compilers and versions agree on it, and some
// values outlive updates. std::hash promises that only within one process. Not for data that an attacker
// chooses. Threads: pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace railhead {

constexpr std::uint32_t Fnv1a32(std::string_view text) {
  std::uint32_t hash = 0x811c9dc5U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
  return hash;
}

constexpr std::uint64_t Fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace railhead
