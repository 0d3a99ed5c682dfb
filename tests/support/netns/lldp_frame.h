// LLDP frames for tests, byte by byte and whole.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railhead::testing {

using Bytes = std::vector<std::uint8_t>;

// "ab" -> {'a', 'b'}
Bytes BytesOf(std::string_view text);
Bytes operator+(Bytes first, const Bytes& second);

// A TLV of any type. Its length field is `size`, or the value's size for -1.
Bytes LldpTlv(unsigned type, const Bytes& value, int size = -1);
// The Ethernet header and these TLVs.
Bytes LldpFrame(const Bytes& tlvs);

// Chassis 02:00:00:00:00:aa, port id `port` (an interface's name), system name `name` ("": none).
Bytes LldpFrameOf(const std::string& name, const std::string& port, std::uint16_t ttl = 120);

}  // namespace railhead::testing
