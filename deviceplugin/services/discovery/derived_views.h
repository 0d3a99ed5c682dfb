// What follows from the node and its health: the advertisement, and what can be bound to pods.
// Threads: thread-safe, as HealthWatch is. Errors: none; what cannot be read is left out.
#pragma once

#include <set>
#include <string>

#include "deviceplugin/node/snapshot/advertisement.h"
#include "deviceplugin/node/snapshot/binding_view.h"
#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/node/topology/accelerator_ids.h"
#include "deviceplugin/services/health/watch.h"
#include "netns/base/root.h"

namespace railhead::discovery {

// Unhealthy are the devices that `health` reports, and those that a pod has under
// another resource name (`withheld`). Pools with late binding have slots. Reads from `root` which slots
// are bound, and which devices pods have lost.
Advertisement AdvertisementOf(const Root& root, const NodeSnapshot& node, const health::HealthWatch& health,
                              const std::set<std::string>& withheld);
// Of devices, not of slots.
BindingView ViewOf(const Root& root, const NodeSnapshot& node, const health::HealthWatch& health,
                   const std::set<std::string>& withheld, const topology::AcceleratorIds::UuidLookup& uuids);

bool HasLatePool(const NodeSnapshot& node);

// Withholds drained devices, and devices that are not ready, before the first health check: after a boot
// their health is unknown. Withholds all devices if these records cannot be read; the first health check
// reports why.
std::set<std::string> WithheldAtFirst(const Root& root, const NodeSnapshot& node);

}  // namespace railhead::discovery
