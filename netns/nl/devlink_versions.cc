#include "netns/nl/devlink_versions.h"

#include <linux/netlink.h>

#include <cerrno>

#include "netns/nl/devlink_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead {

Result<std::map<std::string, std::string>> DevlinkRunningVersions(const std::string& address) {
  const std::string what = "asking by devlink what runs on " + address;
  nl::Socket socket = RH_TRY_WRAP(nl::Socket::Open(NETLINK_GENERIC), what);
  const nl::DevlinkFamily family = RH_TRY(nl::FindDevlink(socket, what));
  nl::Message message = nl::GetDevlinkInfoMessage(family.id, address);
  std::map<std::string, std::string> versions;
  const auto got = socket.Get(
      message, [&](const nl::Received& received) { versions = nl::ParseRunningVersions(received); });
  // No devlink instance, or a driver without information.
  const bool silent = !got && (got.error().sys_errno == ENODEV || got.error().sys_errno == EOPNOTSUPP);
  if (!got && !silent) return Fail(Wrap(got.error(), what));
  return versions;
}

}  // namespace railhead
