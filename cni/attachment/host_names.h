// The names of devices on the host.
//
// A device gets its own names when it is restored. No name that the pod gave it stays. If another interface
// has its name, it gets a substitute name and a record (cni/state/displaced_names.h). When the name is free
// again, the device gets it. Threads: as Kernel. Callers hold the locks of the devices.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// The device's name on the host: its own one. If another interface has that as its name or alternative name,
// a substitute, and writes the record. `own_index`: the device's, if it is on the host already.
Result<std::string> ChooseHostName(const Root& root, RouteApi& host, const AttachedDevice& device,
                                   std::optional<int> own_index);

// Gives a device that has a record its own names, as far as they are free. true: it got some.
Result<bool> ReturnOwnNames(const Root& root, RouteApi& host, const std::string& device);

// The same for all devices that have a record. `held`: devices whose locks the caller holds. This locks the
// others, and skips those that another call holds.
void ReturnFreeNames(const Root& root, RouteApi& host, const std::set<std::string>& held);

}  // namespace railhead::attachment
