// Waiting for links and neighbours by the kernel's events. Internal to netns/nl.
//
// Each function first asks by `socket`. If it has to wait, it opens a second socket in `ns`, which hears
// events. It asks again after the subscription, and again after lost events. So it misses no change.
// Errors are the kernel's words alone: the caller adds what it was waiting for.
// Threads: one at a time per socket.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/nl/socket.h"
#include "netns/ns/netns.h"

namespace railhead::nl {

// As RouteApi::WaitCarrier.
Result<bool> WaitCarrier(Socket& socket, const NetNs& ns, int index,
                         std::chrono::steady_clock::time_point deadline);

// As RouteApi::WaitNeighbour. Calls `ask` every second, and when the kernel has given up asking (after about
// 3 s). If no entry exists, it only waits.
Result<std::optional<MacAddress>> WaitNeighbour(Socket& socket, const NetNs& ns, int index,
                                                const IpAddress& address,
                                                const std::function<Result<void>()>& ask,
                                                std::chrono::steady_clock::time_point deadline);

}  // namespace railhead::nl
