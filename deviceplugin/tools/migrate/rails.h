// What the networks of one rail have in common becomes the rail's.
//
// A rail says VLAN, MTU and addresses for all its devices, whatever network they are attached by. So
// they move there only when the rail's networks all say the same, and name a resource that is of this rail
// alone; otherwise each network goes on saying it by itself, which comes to the same.
// Threads: pure function.
#pragma once

#include <vector>

#include "deviceplugin/tools/migrate/network.h"

namespace railhead::migrate {

// `fabric`: rails and pools. Changes those and the networks; says so in their ledgers.
void MoveToRails(const Options& options, OrderedJson* fabric, std::vector<Network>* networks);

}  // namespace railhead::migrate
