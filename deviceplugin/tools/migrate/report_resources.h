// The outcome of each key of sriov-network-device-plugin's configuration.
// Threads: pure function.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "deviceplugin/tools/migrate/migration_report.h"
#include "deviceplugin/tools/migrate/resources.h"

namespace railhead::migrate {

// `config` is its JSON, `migration` the result.
DocumentReport ReportResources(const std::string& source, const nlohmann::json& config,
                               const ResourceMigration& migration);

}  // namespace railhead::migrate
