// Slots: what kubelet gets from a pool with late binding, in place of devices.
//
// kubelet must choose before the pod's accelerators are known. So it chooses among slots, and ADD binds each
// to a device. There are as many slots as devices, named slot-HASH-nNODE-NN after the resource and the NUMA
// node that they begin with.
//
// Each slot is always paired with one device. A bound slot is paired with its own device. The others get the
// remaining devices, those of the node in their name first. For kubelet a slot has its device's NUMA node and
// health. So free slots per node are free devices per node, also if a slot was bound across nodes. Threads:
// pure functions; ReadBoundSlots reads the journal.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/root.h"

namespace railhead::resources {

using BoundSlots = std::map<std::string, std::string>;  // slot -> device id

// The slots of attached pods, from their journal entries.
BoundSlots ReadBoundSlots(const Root& root);

// The pool as kubelet sees it: its members have the slots' ids. In all other fields they are the devices that
// they are paired with (`function.address` is still the device's).
std::shared_ptr<const ResourcePool> SlotPool(const ResourcePool& devices, const BoundSlots& bound);

}  // namespace railhead::resources
