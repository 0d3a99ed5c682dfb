#include "cni/fabric/probe_endpoint_mac.h"

#include <cstdint>

#include "netns/base/fnv.h"

namespace railhead {
MacAddress ProbeEndpointMac(const std::string& node, const std::string& rail) {
  std::uint64_t hash = Fnv1a64(node + "\n" + rail);
  MacAddress mac;
  for (auto& byte : mac.bytes) {
    byte = static_cast<std::uint8_t>(hash & 0xffU);
    hash >>= 8U;
  }
  mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] & 0xfcU) | 0x02U);
  return mac;
}

}  // namespace railhead
