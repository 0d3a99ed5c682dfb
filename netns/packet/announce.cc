#include "netns/packet/announce.h"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

Result<void> SendFrame(int fd, int index, const std::vector<std::uint8_t>& frame) {
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = index;
  ssize_t sent = 0;
  do {
    sent = sendto(fd, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {};
  Error error = SysError(errno, "sending a frame");
  if (error.sys_errno == ENETDOWN) error.hint = "the interface must be up";
  return Fail(std::move(error));
}

}  // namespace

Result<void> Announce(const NetNs& ns, int index, const MacAddress& mac,
                      const std::vector<IpAddress>& addresses) {
  if (addresses.empty()) return {};
  UniqueFd fd;
  const auto open = [&]() -> Result<void> {
    // Protocol 0: it sends only, nothing is delivered to it.
    fd.Reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return FailSys(errno, "opening a packet socket");
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), "announcing addresses in " + ns.path());
  for (const IpAddress& address : addresses) {
    const auto frame = address.IsV4() ? GratuitousArp(mac, address) : UnsolicitedAdvertisement(mac, address);
    RH_TRY_WRAP(SendFrame(fd.get(), index, frame),
                "announcing " + address.ToString() + " on interface " + std::to_string(index));
  }
  return {};
}

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

Frame NeighbourProbe(const MacAddress& mac, const IpAddress& address) {
  constexpr std::uint16_t kMessageSize = 24;
  Frame frame;
  AppendEthernet(frame, SolicitedNodeMac(address).bytes, mac, kEtherTypeIpv6);
  constexpr std::array<std::uint8_t, 16> kUnspecified = {};
  AppendIpv6(frame, kMessageSize, *IpAddress::FromBytes(kUnspecified.data(), kUnspecified.size()),
             address.SolicitedNode());
  frame.push_back(135);  // neighbour solicitation
  frame.push_back(0);
  Append16(frame, 0);  // checksum, below
  Append(frame, std::array<std::uint8_t, 4>{});
  AppendAddress(frame, address);
  WriteChecksum(frame);
  return frame;
}

}  // namespace railhead
