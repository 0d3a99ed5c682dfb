#include "deviceplugin/services/provision/derived_vf_mac.h"

#include <cstdint>

#include "netns/base/fnv.h"

namespace railhead::provision {
namespace {

constexpr std::uint8_t kLocalUnicast = 0x02;

// 12 bits.
std::uint32_t HashOfOui(const MacAddress& mac) {
  const std::uint32_t hash = Fnv1a32({reinterpret_cast<const char*>(mac.bytes.data()), 3});
  return (hash ^ (hash >> 12) ^ (hash >> 24)) & 0xfffU;
}

}  // namespace

MacAddress DerivedVfMac(const MacAddress& pf, int index) {
  const std::uint32_t hash = HashOfOui(pf);
  MacAddress mac;
  mac.bytes[0] = static_cast<std::uint8_t>(((hash >> 8) << 4) | kLocalUnicast);
  mac.bytes[1] = static_cast<std::uint8_t>(hash & 0xffU);
  mac.bytes[2] = pf.bytes[3];
  mac.bytes[3] = pf.bytes[4];
  mac.bytes[4] = pf.bytes[5];
  mac.bytes[5] = static_cast<std::uint8_t>(index);
  return mac;
}

}  // namespace railhead::provision
