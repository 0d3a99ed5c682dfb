// The names of devices on the host: taken back after a pod, and given back when somebody else frees them.
//
// Nothing that a pod calls its NIC stays on the host, and nothing keeps another NIC from its name for good: a
// device whose name is taken gets a substitute and a record (cni/state/displaced_names.h).
// Threads: as Kernel. Callers hold the locks of the devices.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

// The name under which the device comes to the host: its own, or the substitute with a record when somebody
// on the host has its own, as name or as alternative name. `own_index`: of the device, if it is on the host
// already.
Result<std::string> ClaimHostName(const Root& root, RouteApi& host, const AttachedLink& link,
                                  std::optional<int> own_index);

// Takes from a device on the host every alternative name that it did not have before, and the one that would
// refuse the renaming.
Result<void> RemovePodAltNames(RouteApi& host, const AttachedLink& link, const Link& found);

// Adds the alternative names that the device had before; what somebody else has by now goes on record.
// `name`: its name now. A device that has all of its names has no record afterwards.
Result<void> RestoreAltNames(const Root& root, RouteApi& host, const AttachedLink& link, const Link& now,
                             const std::string& name);

// Gives a device with a record those of its own names that are free. true: something has changed.
Result<bool> ReturnOwnNames(const Root& root, RouteApi& host, const std::string& device);

// The same for all devices with a record, after names may have become free. `held`: devices whose locks the
// caller has; the others are locked here, and left alone when another call holds them.
void ReturnFreeNames(const Root& root, RouteApi& host, const std::set<std::string>& held);

}  // namespace railhead
