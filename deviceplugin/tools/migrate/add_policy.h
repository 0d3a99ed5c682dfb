// The `policy` of fabric.json that migrated networks need. sriov-cni lets their authors set every key,
// railhead only with root's permission. Each network keeps the keys that it has set so far, and no other
// network gets them. Threads: pure function. Errors: those of reading the networks' configurations.
#pragma once

#include <vector>

#include "deviceplugin/tools/migrate/network.h"
#include "netns/base/result.h"

namespace railhead::migrate {

// Adds `policy` to the fabric if a network needs it, with one entry for each, and a remark to the network.
Result<void> AddPolicy(OrderedJson* fabric, std::vector<Network>* networks);

}  // namespace railhead::migrate
