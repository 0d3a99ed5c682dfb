// Auxiliary network devices on the bus "auxiliary": subfunctions, and others that are network devices of
// their own. Their ids are the bus's names: "mlx5_core.sf.2".
//
// Not listed: auxiliary devices that are parts of a function (mlx5_core.eth.0, mlx5_core.rdma.0). Their
// network device is the function's, and is given out with it. Source:
// Documentation/driver-api/auxiliary_bus.rst; sfnum: drivers/net/ethernet/mellanox/mlx5/core/sf/dev/dev.c.
// Threads: thread-safe. Errors: kIo, kConflict.
#pragma once

#include <string_view>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/inventory/netdev_facts.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::inventory {

// "sf" of "mlx5_core.sf.2"; "" for a text that is not the name of an auxiliary device.
std::string_view AuxTypeOf(std::string_view id);

// The devices below one of `functions`, from which they get vendor, device, driver, NUMA node and PF. Sorted
// by id.
Result<std::vector<NicFunction>> ListSubfunctions(const Root& root, const HostCarriers& host,
                                                  const std::vector<NicFunction>& functions);

}  // namespace railhead::inventory
