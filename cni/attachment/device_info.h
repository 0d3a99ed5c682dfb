// The device-info file of an attachment, for the runtime (capability CNIDeviceInfoFile).
//
// Multus names the file by runtimeConfig, and copies it into the pod's network status after ADD. It has one
// device. An attachment of several devices gets none: one of them would look like the only one. The journal
// entry names the file, so that every release removes it.
// Only files of one folder are written and removed (device_info_path.h), and only those of the attachment's
// own device (device_info_owner.h). Links are not followed.
// Errors: kPermission for a file of others. Threads: as WriteStateFile().
// Source: Network Plumbing Working Group, device-info specification 1.1.0; pkg/utils of its library.
#pragma once

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::attachment {

// Replaces a file of the same device.
Result<void> WriteDeviceInfoFile(const Root& root, const JournalEntry& entry);

// Succeeds without a file. A file of others stays.
Result<void> RemoveDeviceInfoFile(const Root& root, const JournalEntry& entry);

}  // namespace railhead::attachment
