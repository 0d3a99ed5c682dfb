// ReturnFreeNames: devices that have substitute names get their own ones, once these are free.
//
// Other interfaces had them when the devices came back to the host (host_names.h).
// Threads: as Kernel. Callers hold the locks of the devices that they name.
#pragma once

#include <set>
#include <string>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Gives a device that has a record its own names, as far as they are free. true: it got some.
Result<bool> ReturnOwnNames(const Root& root, RouteApi& host, const std::string& device);

// The same for all devices that have a record. `held`: devices whose locks the caller holds. This locks the
// others, and skips those that another call holds.
void ReturnFreeNames(const Root& root, RouteApi& host, const std::set<std::string>& held);

}  // namespace railhead::attachment
