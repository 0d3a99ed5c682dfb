#include "netns/nl/address_messages.h"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace railhead::nl {
namespace {

Message AddressMessage(std::uint16_t type, std::uint16_t flags, int index, const IpPrefix& address) {
  Message message(type, flags);
  ifaddrmsg header{};
  header.ifa_family = static_cast<std::uint8_t>(address.address.Family());
  header.ifa_prefixlen = static_cast<std::uint8_t>(address.length);
  header.ifa_scope = address.address.IsLoopback() ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  header.ifa_index = static_cast<std::uint32_t>(index);
  message.Header(header);
  const BytesView bytes(address.address.Data(), address.address.Size());
  message.Put(IFA_LOCAL, bytes);
  message.Put(IFA_ADDRESS, bytes);
  return message;
}

}  // namespace

Message AddAddressMessage(int index, const IpPrefix& address) {
  Message message = AddressMessage(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, index, address);
  // A /31 or /32 has none (RFC 3021).
  if (address.address.IsV4() && address.length < 31) {
    const IpAddress broadcast = address.Last();
    message.Put(IFA_BROADCAST, {broadcast.Data(), broadcast.Size()});
  }
  if (address.address.IsV6()) message.PutU32(IFA_FLAGS, IFA_F_NODAD);
  return message;
}

Message DeleteAddressMessage(int index, const IpPrefix& address) {
  return AddressMessage(RTM_DELADDR, 0, index, address);
}

Message DumpAddressesMessage(int index) {
  Message message(RTM_GETADDR, 0);
  ifaddrmsg header{};
  header.ifa_family = AF_UNSPEC;
  header.ifa_index = static_cast<std::uint32_t>(index);
  message.Header(header);
  return message;
}

std::optional<LinkAddress> ParseAddress(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<ifaddrmsg>(rest);
  if (received.type != RTM_NEWADDR || !header) return std::nullopt;
  // With a peer IFA_ADDRESS is the peer's; IPv6 has IFA_LOCAL only then.
  std::optional<IpAddress> local;
  std::optional<IpAddress> address;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == IFA_LOCAL) local = ReadAddress(payload);
    if (type == IFA_ADDRESS) address = ReadAddress(payload);
  });
  if (!local) local = address;
  if (!local || local->Family() != header->ifa_family || header->ifa_prefixlen > local->Bits()) {
    return std::nullopt;
  }
  return LinkAddress{static_cast<int>(header->ifa_index), {*local, header->ifa_prefixlen}};
}

namespace {

Message NeighbourMessage(std::uint16_t type, std::uint16_t flags, const Neighbour& neighbour,
                         std::uint8_t neighbour_flags = 0) {
  Message message(type, flags);
  ndmsg header{};
  header.ndm_family = static_cast<std::uint8_t>(neighbour.address.Family());
  header.ndm_ifindex = neighbour.link;
  header.ndm_state = neighbour.state;
  header.ndm_flags = neighbour_flags;
  message.Header(header);
  message.Put(NDA_DST, {neighbour.address.Data(), neighbour.address.Size()});
  return message;
}

}  // namespace

Message SetNeighbourMessage(const Neighbour& neighbour) {
  Message message = NeighbourMessage(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, neighbour);
  if (!neighbour.mac.IsZero()) message.Put(NDA_LLADDR, neighbour.mac.bytes);
  return message;
}

Message ResolveNeighbourMessage(const Neighbour& neighbour) {
  return NeighbourMessage(RTM_NEWNEIGH, NLM_F_CREATE, neighbour, NTF_USE);
}

Message DeleteNeighbourMessage(const Neighbour& neighbour) {
  return NeighbourMessage(RTM_DELNEIGH, 0, neighbour);
}

Message DumpNeighboursMessage(int index) {
  Message message(RTM_GETNEIGH, 0);
  ndmsg header{};
  header.ndm_family = AF_UNSPEC;
  message.Header(header);
  message.PutU32(NDA_IFINDEX, static_cast<std::uint32_t>(index));
  return message;
}

std::optional<Neighbour> ParseNeighbour(const Received& received) {
  BytesView rest = received.payload;
  const auto header = TakeHeader<ndmsg>(rest);
  if (received.type != RTM_NEWNEIGH || !header) return std::nullopt;
  Neighbour neighbour;
  neighbour.link = header->ndm_ifindex;
  neighbour.state = header->ndm_state;
  std::optional<IpAddress> address;
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == NDA_DST) address = ReadAddress(payload);
    if (type == NDA_LLADDR) Store(neighbour.mac, ReadMac(payload));
  });
  if (!address || address->Family() != header->ndm_family) return std::nullopt;
  neighbour.address = *address;
  return neighbour;
}

bool IsResolved(const Neighbour& neighbour) {
  constexpr unsigned kValid = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
  return (neighbour.state & kValid) != 0 && !neighbour.mac.IsZero() && !neighbour.mac.IsMulticast();
}

bool HasFailed(const Neighbour& neighbour) {
  return (neighbour.state & NUD_FAILED) != 0;
}

}  // namespace railhead::nl
