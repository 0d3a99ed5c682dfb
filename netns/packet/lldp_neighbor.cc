#include "netns/packet/lldp_neighbor.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

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

}  // namespace railhead
