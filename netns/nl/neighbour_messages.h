// rtnetlink neighbour messages: bytes only. Internal to netns/nl.
// Source: include/uapi/linux/neighbour.h; net/core/neighbour.c.
// Threads: pure functions. Parsers take any bytes.
#pragma once

#include <optional>

#include "netns/nl/message.h"
#include "netns/nl/route.h"

namespace railhead::nl {

// Replaces what is there.
Message SetNeighbourMessage(const Neighbour& neighbour);
// The kernel asks the link for the address at once.
Message ResolveNeighbourMessage(const Neighbour& neighbour);
Message DeleteNeighbourMessage(const Neighbour& neighbour);
// Of one link, filtered by the kernel (strict checking).
Message DumpNeighboursMessage(int index);

// Of RTM_NEWNEIGH, asked for or as an event.
std::optional<Neighbour> ParseNeighbour(const Received& received);

// The kernel sends to its MAC now (NUD_VALID in include/net/neighbour.h), which is one
// host's: in a namespace without IPv4 addresses every address counts as broadcast.
bool IsResolved(const Neighbour& neighbour);
// The kernel gave up asking (NUD_FAILED).
bool HasFailed(const Neighbour& neighbour);

}  // namespace railhead::nl
