// The addresses that host-local has given on a node: how they stay their pods'.
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "deviceplugin/tools/migrate/network.h"
#include "deviceplugin/tools/migrate/report.h"

namespace railhead::migrate {

// Adds to `imports` what is to be run on the node.
DocumentReport ReportHeld(const HeldAddresses& held, const std::vector<Network>& networks,
                          std::vector<std::string>* imports);

}  // namespace railhead::migrate
