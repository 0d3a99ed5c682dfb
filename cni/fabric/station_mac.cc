#include "cni/fabric/station_mac.h"

#include <cstdint>

namespace railhead {

MacAddress StationMac(const std::string& node, const std::string& rail) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  const auto add = [&hash](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL; };
  for (const char c : node) add(c);
  add('\n');
  for (const char c : rail) add(c);
  MacAddress mac;
  for (auto& byte : mac.bytes) {
    byte = static_cast<std::uint8_t>(hash & 0xffU);
    hash >>= 8U;
  }
  mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] & 0xfcU) | 0x02U);
  return mac;
}

}  // namespace railhead
