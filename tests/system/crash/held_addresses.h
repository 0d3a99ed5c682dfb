// What the address store says is held, as lines of a snapshot (snapshot.h).
// Threads: any; takes the store's lock for a moment.
#pragma once

#include <string>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::crash {

// "address A held by CONTAINER NETWORK@IFNAME", and what the store's own check finds.
Result<std::vector<std::string>> HeldAddresses(const Root& root);

}  // namespace railhead::crash
