// ChooseHostName: the name of a device that comes back to the host.
//
// It is the device's own one. If another interface has that, the device gets a substitute name and a record
// (cni/state/displaced_names.h). When the name is free again, the device gets it (return_names.h).
// Threads: as Kernel. Callers hold the locks of the devices.
#pragma once

#include <optional>
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

// Whether another interface than that of `own_index` has the name.
Result<bool> IsNameInUse(RouteApi& host, const std::string& name, std::optional<int> own_index);

}  // namespace railhead::attachment
