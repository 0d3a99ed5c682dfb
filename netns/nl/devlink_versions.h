// A driver's information about its device by devlink: which firmware and packages run on it.
//
// Asking takes the devlink instance's lock, which a driver holds for as long as it recovers a device. So ask
// when something has changed, not by a clock.
// Source: Documentation/networking/devlink/devlink-info.rst, net/devlink/dev.c.
// Ownership: a socket for the time of the call, in the calling thread's network namespace; devlink instances
// belong to one, usually the host's. Threads: thread-safe. Needs no privilege.
#pragma once

#include <map>
#include <string>

#include "netns/base/result.h"

namespace railhead {

// "fw.app.name" -> "ICE OS Default Package". Empty when the function has no devlink instance, or
// its driver says nothing. kUnsupported: the kernel has no devlink.
Result<std::map<std::string, std::string>> DevlinkRunningVersions(const std::string& address);

}  // namespace railhead
