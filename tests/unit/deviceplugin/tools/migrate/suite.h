// Configurations of the SR-IOV suite, as clusters have them, and what became of their keys.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deviceplugin/tools/migrate/migration.h"
#include "deviceplugin/tools/migrate/migration_report.h"

namespace railhead::testing {

// A NetworkAttachmentDefinition in the namespace train, with `config` as its text; "" for no resource.
nlohmann::json NetworkObject(const std::string& name, const std::string& resource, const std::string& config);

// config.json of resources that are one PF each: {"net0": "ens1f0"} as nvidia.com/net0, with RDMA.
std::string DeviceConfigOf(const std::vector<std::pair<std::string, std::string>>& pf_of_resource);

migrate::Documents DocumentsOf(const std::vector<std::string>& texts);
// The failure of a test when it is refused.
migrate::Outcome Migrated(const std::vector<std::string>& texts, const migrate::Options& options = {});

// The file as JSON. null when the file does not exist.
nlohmann::json FileOf(const migrate::Outcome& outcome, const std::string& name);
// The network's configuration in such a file.
nlohmann::json ConfigOfFile(const migrate::Outcome& outcome, const std::string& name);
// "changed to railhead"; the failure of a test when the key is not there exactly once in
// the document whose source ends with `source`.
std::string KeyOutcomeOf(const migrate::Outcome& outcome, const std::string& source, const std::string& key);

// All keys of a document, found by nobody of the migration.
std::vector<std::string> KeysOf(const nlohmann::json& document);
std::vector<std::string> KeysReported(const migrate::DocumentReport& document);

}  // namespace railhead::testing
