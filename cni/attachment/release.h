// Releases an attachment: the one code path for a failed ADD, a killed ADD, DEL, GC and the reconciler.
//
// Restores the devices first, then removes NCCL configuration and addresses: no other pod may get an address
// that a device still has. Deletes the journal entry last, so that an interrupted release is run again from
// the start. If the IPAM plugin fails, the entry stays without devices. The devices are free then, while DEL
// and railheadd run the plugin again. Callers hold the locks of the entry's devices (DevicesOf). Threads: as
// Kernel.
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
  // Until when to wait for a device that no reachable namespace has (cni/attachment/restore.h).
  Deadline deadline = RestoreDeadline();
  // The caller's handle of the pod's namespace. The handle keeps the namespace alive when its path is gone:
  // without this field the release would wait for its own caller.
  const NetNs* pod_ns = nullptr;
};

// `request`: where IPAM plugins are (otherwise where ADD found them). If it is a request for this attachment,
// also a path of the pod's namespace.
Result<void> ReleaseAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                               const CniRequest& request, const JournalEntry& entry,
                               const ReleaseOptions& options = {});

// Releases an attachment whose journal entry cannot be read.
//
// Restores the readable part of the entry like a release. Only the address of a device is known if its part
// cannot be read. With `force` the driver of such a device is bound again, which brings the device to the
// host under its own name. Its VF gets defaults: no VLAN, no rate limit, spoof check on, not trusted.
// Threads: as Kernel. Callers hold the locks of the entry's devices.

struct Recovery {
  std::vector<std::string> restored;  // devices, as before the pod
  std::vector<std::string> reset;     // devices that got defaults, since their earlier settings are unknown
  std::vector<std::string> lost;      // parts that were not restored, and why
  bool ended = false;                 // the entry is gone
};

// Without `force` an entry that is not fully restored stays, so that its devices are not allocated. If its
// pod runs, or may run, the error without `force` is kBusy, and nothing was changed.
Result<Recovery> RecoverAttachment(const Root& root, Kernel& kernel, const Journal& journal,
                                   const UnreadableEntry& file, bool force);

// Restores the settings of a device (netns/nl/device_state.h) that its pod has changed.
//
// Threads: as DeviceApi. Errors: kNotFound if the device is removed during the call.

// Settings that are still not as before: the next pod would get them.
struct UnrestoredSettings {
  std::vector<std::string> fields;
  std::string reason;  // why the first one was refused; empty: the writes succeeded without effect
};

// Writes only the settings that are not as before. Tries a setting that another one blocks again after the
// others. Two differences are not reported: a value that the driver chose itself, and a program that was
// attached before ADD and cannot be attached again.
Result<UnrestoredSettings> RestoreSettings(DeviceApi& devices, const Link& link, const DeviceState& before);

// "rings.rx, channels.combined (Device or resource busy)"
std::string Describe(const UnrestoredSettings& unrestored);

}  // namespace railhead::attachment
