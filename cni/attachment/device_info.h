// The device-info file of an attachment, for the runtime (capability CNIDeviceInfoFile).
//
// Multus names the file by runtimeConfig, and copies it into the pod's network status after ADD. It has one
// device. An attachment of several devices gets none: one of them would look like the only one. The journal
// entry names the file, so that every release removes it. An author of networks may write runtimeConfig, too.
// So only files of one folder are written and removed, and only a file of the same device is removed.
// Errors: kInvalid with the field. Threads: as WriteStateFile().
// Source: Network Plumbing Working Group, device-info specification 1.1.0; pkg/utils of its library.
#pragma once

#include <string>

#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::attachment {

// Whether it is a file in the folder of the specification; "": yes, otherwise why not.
std::string RefusalOfDeviceInfoFile(const std::string& path);

// Replaces a file that is there: Multus copies the device plugin's file to the path before ADD.
Result<void> WriteDeviceInfoFile(const Root& root, const JournalEntry& entry);

// Succeeds without a file. A file that names another device stays.
Result<void> RemoveDeviceInfoFile(const Root& root, const JournalEntry& entry);

}  // namespace railhead::attachment
