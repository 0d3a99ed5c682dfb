// DeviceInfoOwner: whose the device-info file of an attachment is.
//
// An author of networks may write runtimeConfig, too, and name the file of another pod. So only files of the
// attachment's own device are written and removed. The content decides that, since nothing else is known
// after a kill: each of our files names its device, and so does the device plugin's, which Multus copies to
// the path before ADD. ADD holds the device, so no other pod has its file. Links are not followed.
// Errors: kPermission for a file of others, with the field. Threads: as ReadFile().
#pragma once

#include <cstdint>
#include <string>

#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::attachment {

// Before anything changes. WriteDeviceInfoFile() refuses the same.
Result<void> RefuseDeviceInfoFileOfOthers(const Root& root, const JournalEntry& entry);

// The entry's file; "" if the attachment has none.
std::string DeviceInfoFileOf(const Root& root, const JournalEntry& entry);

enum class DeviceInfoOwner : std::uint8_t { kNobody, kOurs, kOthers };

Result<DeviceInfoOwner> OwnerOfDeviceInfoFile(const Root& root, const std::string& file,
                                              const AttachedDevice& device);

}  // namespace railhead::attachment
