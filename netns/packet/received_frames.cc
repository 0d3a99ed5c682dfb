#include "netns/packet/received_frames.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace railhead {
namespace {

using View = std::span<const std::uint8_t>;

constexpr std::size_t kEthernet = 14;
constexpr std::size_t kArp = 28;
constexpr std::size_t kIpv6 = 40;
constexpr std::size_t kMessage = 24;  // solicitation or advertisement without options
constexpr std::uint8_t kNextIcmpV6 = 58;
constexpr std::uint8_t kSolicitation = 135;
constexpr std::uint8_t kAdvertisement = 136;
constexpr std::uint8_t kSourceLinkLayer = 1;
constexpr std::uint8_t kTargetLinkLayer = 2;

// The callers have compared sizes.
unsigned At16(View bytes, std::size_t at) {
  return (unsigned{bytes[at]} << 8U) | bytes[at + 1];
}

MacAddress MacAt(View bytes, std::size_t at) {
  MacAddress mac;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), mac.bytes.size(), mac.bytes.begin());
  return mac;
}

IpAddress AddressAt(View bytes, std::size_t at, std::size_t size) {
  return IpAddress::FromBytes(bytes.data() + at, size).value_or(IpAddress());
}

bool IsHostMac(const MacAddress& mac) {
  return !mac.IsZero() && !mac.IsMulticast();
}

std::uint32_t SumOf(View bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? std::uint32_t{bytes[i]} << 8U : bytes[i];
  }
  return sum;
}

// RFC 4443 section 2.3; `ip` is the whole IPv6 header. At most 64 KiB: no overflow.
bool ChecksumIsRight(View ip, View message) {
  std::uint32_t sum = SumOf(ip.subspan(8, 32)) + SumOf(message);
  sum += static_cast<std::uint32_t>(message.size()) + kNextIcmpV6;
  while (sum > 0xffff) sum = (sum & 0xffffU) + (sum >> 16U);
  return sum == 0xffff;
}

// The ICMPv6 message of an IPv6 packet without extension headers; empty for other packets. Short frames have
// padding behind the packet.
View IcmpMessage(View packet) {
  if (packet.size() < kIpv6 || packet[0] >> 4U != 6 || packet[6] != kNextIcmpV6) return {};
  const std::size_t size = At16(packet, 4);
  if (size < kMessage || size > packet.size() - kIpv6) return {};
  return packet.subspan(kIpv6, size);
}

struct Options {
  std::optional<MacAddress> source_mac;
  std::optional<MacAddress> target_mac;
};

// nullopt: one is of length 0 or not whole.
std::optional<Options> ParseOptions(View bytes) {
  Options options;
  while (!bytes.empty()) {
    const std::size_t size = bytes.size() < 2 ? 0 : std::size_t{bytes[1]} * 8;
    if (size == 0 || size > bytes.size()) return std::nullopt;
    if (size == 8 && bytes[0] == kSourceLinkLayer) options.source_mac = MacAt(bytes, 2);
    if (size == 8 && bytes[0] == kTargetLinkLayer) options.target_mac = MacAt(bytes, 2);
    bytes = bytes.subspan(size);
  }
  return options;
}

// ff02::1:ff00:0/104
bool IsSolicitedNode(const IpAddress& address) {
  static constexpr std::array<std::uint8_t, 13> kPrefix = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), address.Data());
}

// The rules of RFC 4861 7.1.1 and 7.1.2 beyond the form.
bool IsAllowed(const NeighbourMessage& message, const IpAddress& destination, bool solicited,
               const Options& options) {
  if (message.target.IsMulticast() || !IsHostMac(message.ethernet_from)) return false;
  if (message.advertisement) return !destination.IsMulticast() || !solicited;
  return !message.source.IsUnspecified() || (IsSolicitedNode(destination) && !options.source_mac);
}

}  // namespace

std::optional<ArpPacket> ParseArp(View frame) {
  if (frame.size() < kEthernet + kArp || At16(frame, 12) != 0x0806) return std::nullopt;
  const View arp = frame.subspan(kEthernet, kArp);
  // Ethernet and IPv4, with addresses of 6 and 4 bytes.
  if (At16(arp, 0) != 1 || At16(arp, 2) != 0x0800 || At16(arp, 4) != 0x0604) return std::nullopt;
  const unsigned operation = At16(arp, 6);
  if (operation != 1 && operation != 2) return std::nullopt;
  ArpPacket packet;
  packet.reply = operation == 2;
  packet.ethernet_to = MacAt(frame, 0);
  packet.sender_mac = MacAt(arp, 8);
  packet.sender = AddressAt(arp, 14, 4);
  packet.target = AddressAt(arp, 24, 4);
  if (!IsHostMac(packet.sender_mac)) return std::nullopt;
  return packet;
}

std::optional<NeighbourMessage> ParseNeighbourMessage(View frame) {
  if (frame.size() < kEthernet || At16(frame, 12) != 0x86dd) return std::nullopt;
  const View packet = frame.subspan(kEthernet);
  const View icmp = IcmpMessage(packet);
  if (icmp.empty() || packet[7] != 255) return std::nullopt;
  if ((icmp[0] != kSolicitation && icmp[0] != kAdvertisement) || icmp[1] != 0) return std::nullopt;
  if (!ChecksumIsRight(packet.first(kIpv6), icmp)) return std::nullopt;
  const auto options = ParseOptions(icmp.subspan(kMessage));
  if (!options) return std::nullopt;
  NeighbourMessage message;
  message.advertisement = icmp[0] == kAdvertisement;
  message.ethernet_from = MacAt(frame, 6);
  message.source = AddressAt(packet, 8, 16);
  message.target = AddressAt(icmp, 8, 16);
  if (message.advertisement) message.target_mac = options->target_mac;
  const bool solicited = (icmp[4] & 0x40U) != 0;
  if (!IsAllowed(message, AddressAt(packet, 24, 16), solicited, *options)) return std::nullopt;
  return message;
}

}  // namespace railhead
