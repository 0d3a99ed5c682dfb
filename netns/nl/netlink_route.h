// RouteApi over an rtnetlink socket.
//
// One socket, opened in the namespace; a second one only while WaitCarrier or
// WaitNeighbour has to wait. Owns nothing else than a duplicate of the namespace's descriptor.
// Threads and errors: see netns/kernel.h.
#pragma once

#include <memory>

#include "netns/base/result.h"
#include "netns/kernel.h"
#include "netns/ns/netns.h"

namespace railhead {

Result<std::unique_ptr<RouteApi>> OpenNetlinkRoute(const NetNs& ns);

}  // namespace railhead
