// Ending an attachment: the one way, for a failed ADD, a killed ADD, DEL, GC and
// the reconciler.
//
// Devices first, then handoff and addresses: an address must not go to another pod
// while a device still has it. The entry goes last: while there is one, whoever
// failed or was killed in the middle comes again. If the IPAM plugin fails, an entry without devices stays:
// DEL and railheadd ask again, and the devices are free meanwhile. Callers hold the locks of the entry's
// devices (DevicesOf). Threads: as Kernel.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cni/attachment/acquire.h"
#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

std::set<std::string> DevicesOf(const JournalEntry& entry);

struct ReleaseOptions {
  // Until when to wait for a device that no reachable namespace has.
  Deadline deadline = HomeDeadline();
  // A handle that the caller holds on the pod's namespace. The namespace lives as long as the handle,
  // also when its path is gone: without it the release would wait for its own caller.
  const NetNs* pod_ns = nullptr;
};

// `request`: where IPAM plugins are (else where ADD found them), and, when it is
// about this very attachment, a path to the pod's namespace.
Result<void> ReleaseAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                               const CniRequest& request, const JournalEntry& entry,
                               const ReleaseOptions& options = {});

// Ending an attachment whose journal entry cannot be read.
//
// What the entry still says is restored as by a release. Of a device whose part cannot be read nothing is
// known but its address: with `force` its driver is bound anew, which brings it to the host under its own
// name, and its VF gets a PF's defaults: no VLAN, no rate limit, spoof check on, not trusted. Threads: as
// Kernel. Callers hold the locks of the entry's devices.

struct Recovery {
  std::vector<std::string> restored;  // devices, as before the pod
  std::vector<std::string> reset;     // devices that got defaults, for nobody knows what was before
  std::vector<std::string> lost;      // what was not restored, and why
  bool ended = false;                 // the entry is gone
};

// Without `force` an entry of which something is lost stays, so that its devices are not given out. kBusy:
// its pod lives, or may live, and `force` was not given; nothing was touched then.
Result<Recovery> RecoverAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                                   const UnreadableEntry& file, bool force);

// Restores the settings of a device (netns/nl/device_state.h) that its pod has changed.
//
// Threads: as DeviceApi. Errors: kNotFound when the device goes meanwhile.

// What is still not as before: the next pod would get it.
struct LeftSettings {
  std::vector<std::string> fields;
  std::string reason;  // why the first one was refused; empty: the writes succeeded without effect
};

// Writes what is not as before, and only that. A setting that is refused because of another one is tried
// again after the others. Two differences are not reported: a value that the driver chose itself, and
// something that was attached before ADD and cannot be attached again.
Result<LeftSettings> RestoreSettings(DeviceApi& devices, const Link& link, const DeviceState& before);

// "rings.rx, channels.combined (Device or resource busy)"
std::string Describe(const LeftSettings& left);

}  // namespace railhead::attachment
