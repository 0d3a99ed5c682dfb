// Device-info files: what Multus passes on to CNI plugins about an allocated device.
// Source: k8snetworkplumbingwg/device-info-spec 1.1.0, types pci and vdpa.
//
// Written at Allocate, one per resource and device, mode 0444, below /var/run. A reboot empties that, and
// RestoreAllocated() writes missing files. Files of devices with an allocation record are never removed: a
// sandbox can be made again without another Allocate. Threads: thread-safe. Errors: kIo.
#pragma once

#include <string>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::resources {

std::string DeviceInfoPath(const Root& root, const std::string& resource, const std::string& device_id);

// Writes nothing for accelerators and subfunctions: the specification has no type for them.
Result<void> WriteDeviceInfo(const Root& root, const ResourceSpec& spec, const PoolMember& member);

}  // namespace railhead::resources
