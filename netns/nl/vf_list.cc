#include "netns/nl/vf_list.h"

#include <linux/netlink.h>
#include <net/if.h>

#include <cerrno>

#include "netns/nl/message.h"
#include "netns/nl/socket.h"
#include "netns/nl/vf_messages.h"

namespace railhead {

Result<std::map<int, VfSettings>> ListVfs(const std::string& pf) {
  const std::string what = "asking " + pf + " for its VFs";
  const unsigned index = ::if_nametoindex(pf.c_str());
  if (index == 0) return FailSys(errno, what);
  nl::Socket socket = RH_TRY_WRAP(nl::Socket::Open(NETLINK_ROUTE), what);
  nl::Message message = nl::GetVfsMessage(static_cast<int>(index));
  std::map<int, VfSettings> vfs;
  RH_TRY_WRAP(socket.Get(message, [&](const nl::Received& received) { vfs = nl::ParseVfs(received); }), what);
  return vfs;
}

}  // namespace railhead
