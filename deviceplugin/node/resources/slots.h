// Slots: what kubelet gets from a pool with late binding, in place of devices.
//
// kubelet has to choose before anybody knows the pod's accelerators, so it chooses among
// slots, and ADD binds each to a device. There are as many slots as devices, named
// slot-HASH-nNODE-NN after the resource and the NUMA node that they begin with.
//
// At every moment each slot is paired with one device: a bound one with its own, the others
// with what is left, those of the node in their name first. A slot is told to kubelet with
// its device's NUMA node and health, so free slots per node are free devices per node, also
// when one was bound across nodes.
// Threads: pure functions; ReadBoundSlots reads the journal.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

using BoundSlots = std::map<std::string, std::string>;  // slot -> device id

// Of attached pods, by their journal entries.
Result<BoundSlots> ReadBoundSlots(const Root& root);

// The pool as kubelet sees it: its members have the slots' ids, and are for the rest the
// devices that they are paired with (`function.address` is still the device's).
std::shared_ptr<const ResourcePool> SlotPool(const ResourcePool& devices, const BoundSlots& bound);

}  // namespace railhead
