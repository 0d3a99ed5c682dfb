#include "netns/nl/address_messages.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "netns/nl/attributes.h"

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
  LinkAddress found;
  found.link = static_cast<int>(header->ifa_index);
  found.flags = header->ifa_flags;  // the lowest eight of them
  ForEachAttribute(rest, [&](int type, BytesView payload) {
    if (type == IFA_LOCAL) local = ReadAddress(payload);
    if (type == IFA_ADDRESS) address = ReadAddress(payload);
    if (type == IFA_FLAGS) Store(found.flags, ReadStruct<std::uint32_t>(payload));
    if (type == IFA_PROTO) Store(found.protocol, ReadStruct<std::uint8_t>(payload));
  });
  if (!local) local = address;
  if (!local || local->Family() != header->ifa_family || header->ifa_prefixlen > local->Bits()) {
    return std::nullopt;
  }
  found.prefix = {*local, header->ifa_prefixlen};
  return found;
}

}  // namespace railhead::nl
