#include "netns/nl/send_gratuitous_arp.h"

#include <linux/netlink.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "netns/nl/address_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/neighbour_messages.h"
#include "netns/nl/socket.h"

namespace railhead::nl {
namespace {

Result<bool> IsOnlyAddress(Socket& socket, int link, const IpAddress& address) {
  Message message = DumpAddressesMessage(link);
  const auto addresses =
      RH_TRY(socket.Dump<IpAddress>(message, [&](const Received& received) -> std::optional<IpAddress> {
        const auto found = ParseAddress(received);
        if (!found || found->link != link || found->prefix.address.IsV6()) return std::nullopt;
        return found->prefix.address;
      }));
  return addresses == std::vector<IpAddress>{address};
}

}  // namespace

Result<bool> SendGratuitousArp(const NetNs& ns, int link, const IpAddress& address) {
  std::optional<Socket> socket;
  const auto open = [&]() -> Result<void> {
    socket = RH_TRY(Socket::Open(NETLINK_ROUTE));
    return {};
  };
  RH_TRY(OpenSocketsIn(ns, open));
  if (!RH_TRY(IsOnlyAddress(*socket, link, address))) return false;
  Neighbour self;
  self.address = address;
  self.link = link;
  Message resolve = ResolveNeighbourMessage(self);
  RH_TRY(socket->Request(resolve));
  Message forget = DeleteNeighbourMessage(self);
  const auto forgotten = socket->Request(forget);
  if (!forgotten && forgotten.error().sys_errno != ENOENT) return Fail(forgotten.error());
  return true;
}

}  // namespace railhead::nl
