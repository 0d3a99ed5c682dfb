// The device-info file of an attachment, for the runtime (capability CNIDeviceInfoFile).
//
// Multus names the file by runtimeConfig, and copies it into the pod's network status after ADD. It has one
// device. An attachment of several devices gets none: one of them would look like the only one. The journal
// entry names the file, so that every release removes it.
// An author of networks may write runtimeConfig, too, and name the file of another pod. So only files of one
// folder are written and removed, and only those of the attachment's own device. The content decides that,
// since nothing else is known after a kill: each of our files names its device, and so does the device
// plugin's, which Multus copies to the path before ADD. ADD holds the device, so no other pod has its file.
// Links are not followed.
// Errors: kPermission for a file of others; kInvalid with the field. Threads: as WriteStateFile().
// Source: Network Plumbing Working Group, device-info specification 1.1.0; pkg/utils of its library.
#pragma once

#include <string>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::attachment {

// Whether it is a file in the folder of the specification; "": yes, otherwise why not.
std::string RefusalOfDeviceInfoFile(const std::string& path);

// Before anything changes. WriteDeviceInfoFile() refuses the same.
Result<void> RefuseDeviceInfoFileOfOthers(const Root& root, const JournalEntry& entry);

// Replaces a file of the same device.
Result<void> WriteDeviceInfoFile(const Root& root, const JournalEntry& entry);

// Succeeds without a file. A file of others stays.
Result<void> RemoveDeviceInfoFile(const Root& root, const JournalEntry& entry);

}  // namespace railhead::attachment
