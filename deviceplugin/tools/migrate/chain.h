// The plugins of a chain of the SR-IOV suite, one by one, into the configuration of railhead.
//
// What railhead knows under the same name keeps it; what it does by itself is dropped; what neither
// it nor the plugin before it knows is left to a decision. The rules for each key follow what
// sriov-cni, rdma-cni, and containernetworking's tuning, sbr and host-device make of it.
// Threads: pure functions.
#pragma once

#include "deviceplugin/tools/migrate/documents.h"
#include "deviceplugin/tools/migrate/network.h"

namespace railhead::migrate {

// The first of the chain, sriov or host-device, but for its ipam and for what is the network's.
void TakeMainPlugin(const Section& plugin, Network* network);
// Those behind it: what cannot be railhead's stays in the chain.
void TakeChained(const Section& plugin, Network* network);

}  // namespace railhead::migrate
