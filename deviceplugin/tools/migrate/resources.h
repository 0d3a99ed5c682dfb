// What became of each key of sriov-network-device-plugin's configuration.
// Threads: pure function.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/tools/migrate/documents.h"
#include "netns/base/result.h"

namespace railhead::migrate {

// From sriov-network-device-plugin's config.json to a fabric.json to begin with.
//
// The PFs that pfNames and rootDevices name become rails, in the order in which they are
// named, and the resources pools over them. Nothing is made up: VLANs, subnets and MTUs
// are in no config.json and are left out. What cannot be carried over is told.
// Threads: pure functions. Errors: those of ParseSriovdpConfig(); kUnsupported when fabric.json has
// other rules for a name.

struct ResourceNote {
  std::size_t resource = 0;             // its place in resourceList
  std::optional<std::size_t> selector;  // its place among the resource's; nullopt: not of a selector
  std::vector<std::string> keys;        // of the resource, or of the selector; none: all of it
  // Whether what the config.json asks for is lost: other devices are given, or none.
  bool lost = false;
  std::string text;
};

struct ResourceMigration {
  std::string fabric;                  // which ParseFabric() takes; "" when no resource names a PF
  std::vector<std::string> resources;  // full names, in the order of resourceList
  std::vector<ResourceNote> notes;
};

Result<ResourceMigration> MigrateResources(std::string_view text, const std::string& what,
                                           const std::string& default_prefix);

}  // namespace railhead::migrate

namespace railhead::migrate {

// `config` is its JSON, `migration` what was made of it.
DocumentReport ReportResources(const std::string& source, const nlohmann::json& config,
                               const ResourceMigration& migration);

}  // namespace railhead::migrate
