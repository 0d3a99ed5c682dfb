// Plan: what this node advertises, out of configuration and inventory.
//
// Threads: pure functions over the file system; a Plan is immutable.
// Errors: kInvalid and kMalformed for the configuration (with file and JSON pointer),
// kNotFound when there is none.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/ddp.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead {

inline constexpr const char* kSriovdpConfigPath = "/etc/pcidp/config.json";

// Where the configuration is; at most one of them set. Neither: fabric.json where it
// should be, else sriov-network-device-plugin's file where it should be.
// Absolute paths are taken below the root.
struct ConfigSource {
  std::optional<std::string> fabric;
  std::optional<std::string> sriovdp;
  std::string resource_prefix;
  bool use_cdi = false;  // of config.json: ResourceSpec::cdi_nodes
};

struct Plan {
  std::shared_ptr<const Inventory> inventory;
  std::vector<std::shared_ptr<const ResourcePool>> pools;
  std::vector<std::string> absent_rails;  // of some pool, without a PF on this node
  std::string config_path;                // the file that was read
  bool of_fabric = false;                 // it is a fabric.json
  std::set<std::string> rail_pfs;         // of its rails: ids of the devices
  std::string health;                     // Fabric::health
  std::vector<Error> warnings;            // what is not as one would want it, and does not stop it
};

Result<Plan> MakePlan(const Root& root, const ConfigSource& source, const HostNetwork& host,
                      const DdpLookup& ddp);

// A function of `Plan::inventory` that is in no resource, and why. An accelerator or a subfunction only where
// a resource is of their kind: else they are other plugins' affair.
struct LeftOut {
  const NicFunction* function = nullptr;
  std::string because;
};
std::vector<LeftOut> NotAdvertised(const Plan& plan);

// For people and scripts: resources with their devices, and every function that is in
// none with the reason.
std::string PlanAsJson(const Plan& plan);

// Resources out of fabric.json: rails become the PFs that this node has for them.
//
// Threads: pure functions. Errors: kInvalid with the JSON pointer for what the fabric
// asks and railheadd cannot do.

struct FabricResources {
  std::vector<ResourceSpec> specs;
  // Rails of some pool for which this node has no PF: worth a warning.
  std::vector<std::string> absent_rails;
};

// Rail name -> address of this node's PF on it: of several alternatives the first. Rails that the node
// lacks are not there.
std::map<std::string, std::string> PfsOfRails(const Fabric& fabric, const Inventory& inventory);

Result<FabricResources> ResourcesOfFabric(const Fabric& fabric, const Inventory& inventory);

}  // namespace railhead
