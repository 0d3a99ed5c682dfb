// RefuseIfHostUses: keeps a device that the host uses out of pods.
//
// Threads: reads sysfs and asks the host's rtnetlink. Errors: kInvalid says what the host uses, and what to
// do.
#pragma once

#include <string>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// kInvalid for a device that the host uses (netns/nl/host_use.h), or that has an interface on top. A move
// would remove these, and DEL could not restore them.
Result<void> RefuseIfHostUses(const Root& root, RouteApi& host, const Link& link, const std::string& bdf);

}  // namespace railhead::attachment
