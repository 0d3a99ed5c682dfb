#include "netns/packet/lldp.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "netns/base/addresses.h"

namespace railhead {
namespace {

using View = std::span<const std::uint8_t>;

constexpr std::size_t kLldpHeader = 14;
constexpr std::uint16_t kLldpEtherType = 0x88cc;
constexpr std::size_t kMaxText = 255;

enum LldpTlv : unsigned {
  kTlvEnd = 0,
  kTlvChassis = 1,
  kTlvPort = 2,
  kTlvTtl = 3,
  kTlvPortDescription = 4,
  kTlvSystemName = 5,
  kTlvOrganisation = 127
};

// Chassis and port ids number their kinds differently.
enum class IdKind : std::uint8_t { kText, kMac, kAddress };

IdKind KindOfChassis(std::uint8_t subtype) {
  if (subtype == 4) return IdKind::kMac;
  return subtype == 5 ? IdKind::kAddress : IdKind::kText;
}

IdKind KindOfPort(std::uint8_t subtype) {
  if (subtype == 3) return IdKind::kMac;
  return subtype == 4 ? IdKind::kAddress : IdKind::kText;
}

// The callers have compared sizes.
unsigned Number16(View bytes, std::size_t at) {
  return (unsigned{bytes[at]} << 8U) | bytes[at + 1];
}

bool IsPrintable(std::uint8_t byte) {
  return byte >= 0x20 && byte < 0x7f;
}

View Trimmed(View bytes) {
  const auto is_blank = [](std::uint8_t byte) { return byte == 0 || byte == ' '; };
  while (!bytes.empty() && is_blank(bytes.front())) bytes = bytes.subspan(1);
  while (!bytes.empty() && is_blank(bytes.back())) bytes = bytes.first(bytes.size() - 1);
  return bytes;
}

std::string TextOf(View bytes) {
  bytes = Trimmed(bytes);
  std::string text;
  for (const std::uint8_t byte : bytes.first(std::min(bytes.size(), kMaxText)))
    text.push_back(IsPrintable(byte) ? static_cast<char>(byte) : '?');
  return text;
}

std::string HexOf(View bytes) {
  std::string text = "0x";
  for (const std::uint8_t byte : bytes.first(std::min(bytes.size(), (kMaxText - 2) / 2))) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 0xfU]);
  }
  return text;
}

// IANA's address families: 1 is IPv4, 2 IPv6.
std::optional<std::string> AddressText(View id) {
  if (id.empty()) return std::nullopt;
  const View address = id.subspan(1);
  if (!(id[0] == 1 && address.size() == 4) && !(id[0] == 2 && address.size() == 16)) return std::nullopt;
  return IpAddress::FromBytes(address.data(), address.size())->ToString();
}

// Never empty, as `id` is not.
std::string IdText(View id, IdKind kind) {
  if (kind == IdKind::kMac && id.size() == 6) {
    MacAddress mac;
    std::copy(id.begin(), id.end(), mac.bytes.begin());
    return mac.ToString();
  }
  if (kind == IdKind::kAddress) {
    if (auto text = AddressText(id)) return *std::move(text);
  }
  const View text = Trimmed(id);
  const bool readable = kind == IdKind::kText && !text.empty() && std::ranges::all_of(text, IsPrintable);
  return readable ? TextOf(text) : HexOf(id);
}

// An organisation's: three bytes that name it, its own subtype, and the value.
void ReadOrganisation(View value, LldpNeighbor& neighbor) {
  constexpr std::array<std::uint8_t, 4> kPortVlan = {0x00, 0x80, 0xc2, 1};
  constexpr std::array<std::uint8_t, 4> kVlanName = {0x00, 0x80, 0xc2, 3};
  constexpr std::array<std::uint8_t, 4> kMaxFrame = {0x00, 0x12, 0x0f, 4};
  if (value.size() < 6) return;
  const auto is = [&](const auto& which) { return std::equal(which.begin(), which.end(), value.begin()); };
  const auto number = static_cast<int>(Number16(value, 4));
  // 0: the port has no such VLAN.
  const bool is_vlan = number >= 1 && number <= 4094;
  // The name, which nobody needs here, has its length before it.
  if (is(kVlanName) && is_vlan && value.size() > 6 && value.size() == 7U + value[6])
    neighbor.vlans.insert(number);
  if (value.size() != 6) return;
  if (is(kPortVlan) && !neighbor.port_vlan && is_vlan) neighbor.port_vlan = number;
  if (is(kMaxFrame) && !neighbor.max_frame && number > 0) neighbor.max_frame = number;
}

void ReadOptional(unsigned type, View value, LldpNeighbor& neighbor) {
  if (type == kTlvPortDescription && neighbor.port_description.empty())
    neighbor.port_description = TextOf(value);
  if (type == kTlvSystemName && neighbor.system_name.empty()) neighbor.system_name = TextOf(value);
  if (type == kTlvOrganisation) ReadOrganisation(value, neighbor);
}

// One of the three that come first. An id is a byte that says of what kind it is, and 1 to 255 more.
bool ReadMandatory(unsigned type, View value, LldpNeighbor& neighbor) {
  if (type == kTlvTtl) {
    if (value.size() < 2) return false;
    neighbor.ttl = std::chrono::seconds(Number16(value, 0));
    return true;
  }
  if (value.size() < 2 || value.size() > 256) return false;
  const View id = value.subspan(1);
  if (type == kTlvChassis) {
    neighbor.chassis = IdText(id, KindOfChassis(value[0]));
  } else {
    neighbor.port = IdText(id, KindOfPort(value[0]));
    neighbor.port_is_mac = KindOfPort(value[0]) == IdKind::kMac;
  }
  return true;
}

}  // namespace

std::optional<LldpNeighbor> ParseLldp(View frame) {
  if (frame.size() < kLldpHeader || Number16(frame, 12) != kLldpEtherType) return std::nullopt;
  View rest = frame.subspan(kLldpHeader);
  LldpNeighbor neighbor;
  unsigned next = kTlvChassis;  // of the mandatory ones
  while (rest.size() >= 2) {
    const unsigned header = Number16(rest, 0);
    const unsigned type = header >> 9U;
    const std::size_t size = header & 0x1ffU;
    if (size > rest.size() - 2) return std::nullopt;
    const View value = rest.subspan(2, size);
    rest = rest.subspan(2 + size);
    if (next <= kTlvTtl) {
      if (type != next || !ReadMandatory(type, value, neighbor)) return std::nullopt;
      ++next;
      continue;
    }
    if (type == kTlvEnd) return neighbor;  // what follows is padding of short frames
    if (type <= kTlvTtl) return std::nullopt;
    ReadOptional(type, value, neighbor);
  }
  // The TLV that ends it is optional; a single byte is the remains of a truncated one.
  if (next <= kTlvTtl || !rest.empty()) return std::nullopt;
  return neighbor;
}

namespace {

constexpr int kLldpAtOnce = 64;
// An LLDP frame fits into any Ethernet frame; larger frames are not LLDP.
constexpr std::size_t kLldpFrame = 1600;
// A few of the largest. A flood fills this buffer, and not the node's memory.
constexpr int kLldpBuffer = 32 * 1024;

// Nearest bridge, nearest non-TPMR bridge, nearest customer bridge.
constexpr std::array<MacAddress, 3> kLldpGroups = {{{{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}},
                                                    {{0x01, 0x80, 0xc2, 0x00, 0x00, 0x03}},
                                                    {{0x01, 0x80, 0xc2, 0x00, 0x00, 0x00}}}};

// Frames to a group that the device has joined, and that are the device's own. Frames of VLANs that it does
// not have look as if they were for another host; those of VLANs that it has are the VLAN interface's when
// they come here (__netif_receive_skb_core in net/core/dev.c). A VF can send in its VLAN.
std::array<sock_filter, 6> LldpFilter(int link) {
  return {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_MULTICAST, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_IFINDEX)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(link), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0x40000),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
}

Result<void> JoinLldpGroups(int fd, int link) {
  for (const MacAddress& group : kLldpGroups) {
    packet_mreq membership{};
    membership.mr_ifindex = link;
    membership.mr_type = PACKET_MR_MULTICAST;
    membership.mr_alen = group.bytes.size();
    std::copy(group.bytes.begin(), group.bytes.end(), std::begin(membership.mr_address));
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership)) != 0)
      return FailSys(errno, "joining multicast group " + group.ToString());
  }
  return {};
}

Result<UniqueFd> OpenLldpSocket(int link) {
  // Protocol 0: nothing comes in before the filter is there.
  UniqueFd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    Error error = SysError(errno, "opening a packet socket");
    if (error.sys_errno == EPERM) error.hint = "this needs CAP_NET_RAW";
    return Fail(std::move(error));
  }
  auto filter = LldpFilter(link);
  const sock_fprog program{filter.size(), filter.data()};
  if (setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0)
    return FailSys(errno, "filtering a packet socket");
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kLldpBuffer, sizeof(kLldpBuffer));
  RH_TRY(JoinLldpGroups(fd.get(), link));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_LLDP);
  address.sll_ifindex = link;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return FailSys(errno, "binding a packet socket");
  return fd;
}

}  // namespace

Result<LldpListener> LldpListener::Open(const NetNs& ns, int link) {
  const std::string what = "listening for LLDP on interface " + std::to_string(link);
  // A socket that is bound to 0 would hear all of them.
  if (link <= 0) return Fail(ErrorCode::kNotFound, what + ": the interface does not exist");
  UniqueFd fd;
  const auto open = [&]() -> Result<void> {
    fd = RH_TRY(OpenLldpSocket(link));
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), what);
  return LldpListener(std::move(fd), link);
}

Result<std::optional<LldpNeighbor>> LldpListener::Receive(std::chrono::steady_clock::time_point deadline) {
  std::array<std::uint8_t, kLldpFrame> frame{};
  for (int i = 0; i < kLldpAtOnce;) {
    const ssize_t size = recv(fd_.get(), frame.data(), frame.size(), MSG_TRUNC);
    // The device went down: the kernel reports this once, and nothing has to be done.
    if (size < 0 && (errno == EINTR || errno == ENETDOWN)) continue;
    if (size < 0 && errno != EAGAIN)
      return FailSys(errno, "receiving LLDP on interface " + std::to_string(link_));
    if (size >= 0) {
      ++i;
      if (static_cast<std::size_t>(size) > frame.size()) continue;
      auto neighbor = ParseLldp({frame.data(), static_cast<std::size_t>(size)});
      if (neighbor) return neighbor;
      continue;
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd waiting{fd_.get(), POLLIN, 0};
    const int limit = static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
    if (poll(&waiting, 1, limit) < 0 && errno != EINTR)
      return FailSys(errno, "waiting for LLDP on interface " + std::to_string(link_));
  }
  return std::nullopt;
}

}  // namespace railhead
