#include "netns/nl/neighbour_messages.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "netns/nl/attributes.h"

namespace railhead::nl {
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
