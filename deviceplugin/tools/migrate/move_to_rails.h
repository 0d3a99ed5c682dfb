// Moves settings that the networks of one rail have in common to the rail.
//
// A rail sets VLAN, MTU and addresses for all its devices, whatever network attaches them. So a setting moves
// only if all networks of the rail have the same value. Their resource must also have devices of this rail
// only. Otherwise each network keeps its own settings, with the same effect.
// Threads: pure function.
#pragma once

#include <vector>

#include "deviceplugin/tools/migrate/network.h"

namespace railhead::migrate {

// `fabric`: rails and pools. Changes those and the networks, and sets the outcomes of the keys.
void MoveToRails(const Options& options, OrderedJson* fabric, std::vector<Network>* networks);

}  // namespace railhead::migrate
