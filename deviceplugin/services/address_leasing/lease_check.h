// Whether what the fabric says of leasing can be carried out: plan and store together.
// Threads: pure functions over files. Errors: kInvalid, kMalformed, with the JSON pointer.
#pragma once

#include <string>
#include <utility>

#include "cni/fabric/fabric.h"
#include "ipam/lease/settings.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead {

// The kind of store, as MakeClusterStore() knows it, and its own settings.
std::pair<std::string, std::string> StoreOf(const LeaseStoreConfig& store);

// Asks nobody. Well with a fabric that leases nothing. `what` names its file in messages.
Result<void> CheckLeasing(const Fabric& fabric, const std::string& what);
// The same of a file; well without one, too.
Result<void> CheckLeasing(const Root& root, const std::string& fabric_path);

}  // namespace railhead
