// Waiting for links and neighbours by the kernel's events. Internal to netns/nl.
//
// Each looks first, by `socket`; only what is not there yet costs a second socket,
// opened in `ns`, that hears events. What changes between the first look and the
// subscription is found by looking again, and so is what the kernel says it dropped.
// Errors are the kernel's words alone: the caller says what it was waiting for.
// Threads: one at a time per socket.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "netns/base/ip_address.h"
#include "netns/base/mac_address.h"
#include "netns/base/result.h"
#include "netns/nl/socket.h"
#include "netns/ns/netns.h"

namespace railhead::nl {

// As RouteApi::WaitCarrier.
Result<bool> WaitCarrier(Socket& socket, const NetNs& ns, int index,
                         std::chrono::steady_clock::time_point deadline);

// As RouteApi::WaitNeighbour. `ask` is called every second, and when the kernel has
// given up asking (after about 3 s); an entry that does not exist is only waited for.
Result<std::optional<MacAddress>> WaitNeighbour(Socket& socket, const NetNs& ns, int index,
                                                const IpAddress& address,
                                                const std::function<Result<void>()>& ask,
                                                std::chrono::steady_clock::time_point deadline);

}  // namespace railhead::nl
