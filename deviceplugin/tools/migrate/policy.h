// What migrated networks need of fabric.json's `policy`: sriov-cni let their authors say everything, railhead
// asks root. What the networks said so far goes on being allowed to them, and to no others.
// Threads: pure function. Errors: those of reading the networks' configurations.
#pragma once

#include <vector>

#include "deviceplugin/tools/migrate/network.h"

namespace railhead::migrate {

// Adds `policy` to the fabric if a network needs it, with one entry for each, and a remark to the network.
Result<void> AddPolicy(OrderedJson* fabric, std::vector<Network>* networks);

}  // namespace railhead::migrate
