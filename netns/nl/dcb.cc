#include "netns/nl/dcb.h"

#include <linux/netlink.h>

#include <cerrno>

#include "netns/nl/dcb_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead {

Result<std::optional<DcbState>> ReadDcb(const std::string& netdev) {
  const std::string what = "reading PFC and ETS of " + netdev;
  nl::Socket socket = RH_TRY_WRAP(nl::Socket::Open(NETLINK_ROUTE), what);
  nl::Message message = nl::GetDcbMessage(netdev);
  std::optional<DcbState> state;
  const auto got = socket.Get(message, [&](const nl::Received& received) { state = nl::ParseDcb(received); });
  if (got) return state;
  if (got.error().sys_errno == EOPNOTSUPP) return std::nullopt;
  return Fail(Wrap(got.error(), what));
}

}  // namespace railhead
