#include "netns/packet/frames.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace railhead {
namespace {

using Frame = std::vector<std::uint8_t>;

constexpr std::array<std::uint8_t, 6> kBroadcast = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr std::array<std::uint8_t, 6> kNobody = {};
// Ethernet and IPv6 addresses of all nodes on the link (RFC 2464 section 7).
constexpr std::array<std::uint8_t, 6> kAllNodesMac = {0x33, 0x33, 0, 0, 0, 1};
constexpr std::array<std::uint8_t, 16> kAllNodes = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

constexpr std::uint16_t kEtherTypeArp = 0x0806;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;
constexpr std::uint8_t kIcmpV6 = 58;
constexpr std::size_t kEthernetSize = 14;
constexpr std::size_t kIpv6Size = 40;
constexpr std::size_t kChecksumOffset = kEthernetSize + kIpv6Size + 2;

template <typename Container>
void Append(Frame& frame, const Container& bytes) {
  frame.insert(frame.end(), std::begin(bytes), std::end(bytes));
}

void Append16(Frame& frame, std::uint16_t value) {
  frame.push_back(static_cast<std::uint8_t>(value >> 8U));
  frame.push_back(static_cast<std::uint8_t>(value & 0xffU));
}

void AppendAddress(Frame& frame, const IpAddress& address) {
  frame.insert(frame.end(), address.Data(), address.Data() + address.Size());
}

void AppendEthernet(Frame& frame, const std::array<std::uint8_t, 6>& to, const MacAddress& from,
                    std::uint16_t type) {
  Append(frame, to);
  Append(frame, from.bytes);
  Append16(frame, type);
}

// RFC 826: a request for `target`, sent to everyone.
Frame ArpRequest(const MacAddress& mac, const IpAddress& sender, const IpAddress& target) {
  Frame frame;
  AppendEthernet(frame, kBroadcast, mac, kEtherTypeArp);
  Append16(frame, 1);       // hardware: Ethernet
  Append16(frame, 0x0800);  // protocol: IPv4
  frame.push_back(6);
  frame.push_back(4);
  Append16(frame, 1);  // request
  Append(frame, mac.bytes);
  AppendAddress(frame, sender);
  Append(frame, kNobody);
  AppendAddress(frame, target);
  return frame;
}

// Adds 16-bit words of bytes [from, to), an even number, to a ones' complement sum.
std::uint32_t Sum(const Frame& frame, std::size_t from, std::size_t to) {
  std::uint32_t sum = 0;
  for (std::size_t i = from; i + 1 < to; i += 2) {
    sum += (std::uint32_t{frame[i]} << 8U) | frame[i + 1];
  }
  return sum;
}

// RFC 4443 section 2.3: over the pseudo header (addresses, length, next header)
// and the message.
void WriteChecksum(Frame& frame) {
  const auto length = static_cast<std::uint32_t>(frame.size() - kEthernetSize - kIpv6Size);
  std::uint32_t sum = length + kIcmpV6;
  sum += Sum(frame, kEthernetSize + 8, frame.size());
  while (sum > 0xffff) sum = (sum & 0xffffU) + (sum >> 16U);
  const auto checksum = static_cast<std::uint16_t>(~sum);
  frame[kChecksumOffset] = static_cast<std::uint8_t>(checksum >> 8U);
  frame[kChecksumOffset + 1] = static_cast<std::uint8_t>(checksum & 0xffU);
}

// With hop limit 255, which proves that no router forwarded it.
void AppendIpv6(Frame& frame, std::uint16_t size, const IpAddress& from, const IpAddress& to) {
  Append(frame, std::array<std::uint8_t, 4>{0x60, 0, 0, 0});
  Append16(frame, size);
  frame.push_back(kIcmpV6);
  frame.push_back(255);
  AppendAddress(frame, from);
  AppendAddress(frame, to);
}

}  // namespace

Frame GratuitousArp(const MacAddress& mac, const IpAddress& address) {
  return ArpRequest(mac, address, address);
}

Frame ArpProbe(const MacAddress& mac, const IpAddress& address) {
  return ArpRequest(mac, IpAddress::V4(0), address);
}

Frame UnsolicitedAdvertisement(const MacAddress& mac, const IpAddress& address, bool override_flag) {
  constexpr std::uint16_t kMessageSize = 32;
  Frame frame;
  AppendEthernet(frame, kAllNodesMac, mac, kEtherTypeIpv6);
  AppendIpv6(frame, kMessageSize, address, *IpAddress::FromBytes(kAllNodes.data(), kAllNodes.size()));
  frame.push_back(136);  // neighbour advertisement
  frame.push_back(0);
  Append16(frame, 0);  // checksum, below
  frame.push_back(override_flag ? 0x20 : 0);
  Append(frame, std::array<std::uint8_t, 3>{});
  AppendAddress(frame, address);
  frame.push_back(2);  // option: target link-layer address
  frame.push_back(1);  // in units of 8 bytes
  Append(frame, mac.bytes);
  WriteChecksum(frame);
  return frame;
}

MacAddress SolicitedNodeMac(const IpAddress& address) {
  MacAddress mac{{0x33, 0x33, 0xff}};
  std::copy_n(address.Data() + 13, 3, mac.bytes.begin() + 3);
  return mac;
}

namespace {

// `option`: of the source's MAC, which a solicitation from :: does not have.
Frame Solicitation(const MacAddress& mac, const IpAddress& source, const IpAddress& address, bool option) {
  constexpr std::uint16_t kMessageSize = 24;
  constexpr std::uint16_t kOptionSize = 8;
  Frame frame;
  AppendEthernet(frame, SolicitedNodeMac(address).bytes, mac, kEtherTypeIpv6);
  AppendIpv6(frame, option ? kMessageSize + kOptionSize : kMessageSize, source, address.SolicitedNode());
  frame.push_back(135);  // neighbour solicitation
  frame.push_back(0);
  Append16(frame, 0);  // checksum, below
  Append(frame, std::array<std::uint8_t, 4>{});
  AppendAddress(frame, address);
  if (option) {
    frame.push_back(1);  // source link-layer address
    frame.push_back(1);  // in units of 8 bytes
    Append(frame, mac.bytes);
  }
  WriteChecksum(frame);
  return frame;
}

}  // namespace

Frame NeighbourProbe(const MacAddress& mac, const IpAddress& address) {
  constexpr std::array<std::uint8_t, 16> kUnspecified = {};
  return Solicitation(mac, *IpAddress::FromBytes(kUnspecified.data(), kUnspecified.size()), address, false);
}

Frame NeighbourSolicitation(const MacAddress& mac, const IpAddress& source, const IpAddress& address) {
  return Solicitation(mac, source, address, true);
}

}  // namespace railhead
