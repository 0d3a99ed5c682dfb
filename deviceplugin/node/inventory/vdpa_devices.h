// vDPA devices as sysfs shows them: children of the PCI function or subfunction that
// provides them, on the bus "vdpa".
//
// Reads below /sys of `root` at each call. Source: drivers/vdpa/vdpa.c (the bus and its
// drivers vhost_vdpa and virtio_vdpa), drivers/vhost/vdpa.c (vhost-vdpa-N).
// Threads: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::inventory {

struct VdpaDevice {
  std::string name;                 // "vdpa0", or the name that its creator chose
  std::string parent;               // id of the function it is on: "0000:65:00.2", "mlx5_core.sf.2"
  VdpaType type = VdpaType::kNone;  // kNone: bound to no driver, or to an unknown one
  std::string node;                 // "/dev/vhost-vdpa-0"; "" but for kVhost
};

// Sorted by name; a function with several provides the first.
Result<std::vector<VdpaDevice>> ListVdpaDevices(const Root& root);

// The words of configuration and device-info files: "vhost", "virtio", "".
const char* NameOf(VdpaType type);

}  // namespace railhead::inventory
