// Auxiliary network devices on the bus "auxiliary": subfunctions, and others that are network devices of
// their own. Their ids are the bus's names: "mlx5_core.sf.2".
//
// Not listed: auxiliary devices that are parts of a function (mlx5_core.eth.0, mlx5_core.rdma.0). Their
// network device is the function's, and is given out with it. Source:
// Documentation/driver-api/auxiliary_bus.rst; sfnum: drivers/net/ethernet/mellanox/mlx5/core/sf/dev/dev.c.
// Threads: thread-safe. Errors: kIo, kConflict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::inventory {

// "sf" of "mlx5_core.sf.2"; "" for a text that is not the name of an auxiliary device.
std::string_view AuxTypeOf(std::string_view id);

// The devices below one of `functions`, from which they get vendor, device, driver, NUMA node and PF. Sorted
// by id.
Result<std::vector<NicFunction>> ListSubfunctions(const Root& root, const HostCarriers& host,
                                                  const std::vector<NicFunction>& functions);

// vDPA devices as sysfs shows them: children of the PCI function or subfunction that
// provides them, on the bus "vdpa".
//
// Reads below /sys of `root` at each call. Source: drivers/vdpa/vdpa.c (the bus and its
// drivers vhost_vdpa and virtio_vdpa), drivers/vhost/vdpa.c (vhost-vdpa-N).
// Threads: thread-safe.

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
