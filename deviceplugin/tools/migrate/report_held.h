// The report on addresses that host-local has allocated on a node: how pods keep them.
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "deviceplugin/tools/migrate/migration_report.h"
#include "deviceplugin/tools/migrate/network.h"

namespace railhead::migrate {

// Adds the commands for the node to `imports`.
DocumentReport ReportHeld(const HeldAddresses& held, const std::vector<Network>& networks,
                          std::vector<std::string>* imports);

}  // namespace railhead::migrate
