// What became of each key of sriov-network-device-plugin's configuration.
// Threads: pure function.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "deviceplugin/tools/migrate/report.h"
#include "deviceplugin/tools/migrate/sriovdp_to_fabric.h"

namespace railhead::migrate {

// `config` is its JSON, `migration` what was made of it.
DocumentReport ReportResources(const std::string& source, const nlohmann::json& config,
                               const ResourceMigration& migration);

}  // namespace railhead::migrate
