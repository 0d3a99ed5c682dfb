#include "tests/support/netns/lldp_frame.h"

namespace railhead::testing {

Bytes BytesOf(std::string_view text) {
  return {text.begin(), text.end()};
}

Bytes operator+(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Bytes LldpTlv(unsigned type, const Bytes& value, int size) {
  const unsigned header =
      (type << 9U) | (size < 0 ? static_cast<unsigned>(value.size()) : static_cast<unsigned>(size));
  return Bytes{static_cast<std::uint8_t>(header >> 8U), static_cast<std::uint8_t>(header & 0xffU)} + value;
}

Bytes LldpFrame(const Bytes& tlvs) {
  return Bytes{0x01, 0x80, 0xc2, 0, 0, 0x0e, 0x02, 0, 0, 0, 0, 0xaa, 0x88, 0xcc} + tlvs;
}

Bytes LldpFrameOf(const std::string& name, const std::string& port, std::uint16_t ttl) {
  Bytes tlvs = LldpTlv(1, {4, 0x02, 0, 0, 0, 0, 0xaa}) + LldpTlv(2, Bytes{5} + BytesOf(port)) +
               LldpTlv(3, {static_cast<std::uint8_t>(ttl >> 8U), static_cast<std::uint8_t>(ttl & 0xffU)});
  if (!name.empty()) tlvs = tlvs + LldpTlv(5, BytesOf(name));
  return LldpFrame(tlvs + LldpTlv(0, {}));
}

}  // namespace railhead::testing
