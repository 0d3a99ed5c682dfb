// RestoreAltNames: the alternative names of devices that come back to the host.
//
// No name that the pod gave a device stays. Names that another interface has now go into the device's record
// (cni/state/displaced_names.h). Threads: as Kernel. Callers hold the locks of the devices. Errors: those of
// rtnetlink and of the record.
#pragma once

#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Removes every alternative name that the device did not have before, and the one that would prevent the
// renaming.
Result<void> RemovePodAltNames(RouteApi& host, const AttachedDevice& device, const Link& found);

// Adds the alternative names that the device had before. Those that another interface has now go into the
// record. `name`: the device's name now. Removes the record of a device that has all of its names.
Result<void> RestoreAltNames(const Root& root, RouteApi& host, const AttachedDevice& device, const Link& now,
                             const std::string& name);

// Adds the names that are missing and free. false: another interface has one of them.
Result<bool> AddAltNames(RouteApi& host, const Link& link, const std::vector<std::string>& requested);

}  // namespace railhead::attachment
