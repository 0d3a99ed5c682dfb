// From sriov-network-device-plugin's config.json to a first fabric.json.
//
// The PFs that pfNames and rootDevices name become rails, in their order, and the resources become pools over
// them. The migration invents nothing: a config.json has no VLANs, subnets or MTUs, so the result has none.
// It reports what it cannot carry over.
// Threads: pure functions. Errors: those of ParseSriovdpConfig(); kUnsupported when fabric.json has
// other rules for a name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"

namespace railhead::migrate {

struct ResourceNote {
  std::size_t resource = 0;             // its place in resourceList
  std::optional<std::size_t> selector;  // its place in the resource; nullopt: it concerns the resource
  std::vector<std::string> keys;        // of the resource or the selector; empty: every key
  // Whether a requirement of config.json is lost: the pool has other devices, or none.
  bool lost = false;
  std::string text;
};

struct ResourceMigration {
  std::string fabric;                  // ParseFabric() accepts it; "" when no resource names a PF
  std::vector<std::string> resources;  // full names, in the order of resourceList
  std::vector<ResourceNote> notes;
};

Result<ResourceMigration> MigrateResources(std::string_view text, const std::string& what,
                                           const std::string& default_prefix);

}  // namespace railhead::migrate
