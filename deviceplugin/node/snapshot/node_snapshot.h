// NodeSnapshot: one reading of the node: its fabric, its functions, its rails' PFs, and the resources that
// follow from them.
//
// Threads: pure functions over the file system; a value that readers share is never changed. Errors: kInvalid
// and kMalformed for the configuration (with file and JSON pointer), kNotFound without a configuration.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead {

inline constexpr const char* kSriovdpConfigPath = "/etc/pcidp/config.json";

// Where the configuration is; at most one of them set. Neither: fabric.json at its default path, else
// sriov-network-device-plugin's file at its default path. Absolute paths are taken below the root.
struct ConfigSource {
  std::optional<std::string> fabric;
  std::optional<std::string> sriovdp;
  std::string resource_prefix;
  bool use_cdi = false;  // of config.json: ResourceSpec::cdi_nodes
  // Nothing is done by it, so it may be any user's, and writable by others (netns/base/root_file.h).
  bool is_proposal = false;
};

struct NodeSnapshot {
  std::shared_ptr<const inventory::Inventory> inventory;
  std::vector<std::shared_ptr<const resources::ResourcePool>> pools;
  std::vector<std::string> absent_rails;  // of some pool, without a PF on this node
  std::string config_path;                // the file that was read
  bool of_fabric = false;                 // it is a fabric.json
  std::vector<Error> warnings;            // problems that do not stop it
  // What addresses come from, also beside a config.json; nullptr: no such file, or `fabric_error` says why.
  std::shared_ptr<const Fabric> fabric;
  std::string fabric_path;
  std::optional<Error> fabric_error;  // only beside a config.json
  // Rail name -> id of this node's PF on it, as PfsOfRails(). Empty beside a config.json.
  std::map<std::string, std::string> pf_of_rail;

  // Of this node's devices; nullptr beside a config.json.
  [[nodiscard]] const Fabric* rails() const { return of_fabric ? fabric.get() : nullptr; }

  static void List(auto& f) {
    f("config", &NodeSnapshot::config_path);
    f("resources", &NodeSnapshot::pools);
    f.Output("notAdvertised", [](const auto& node) { return NotAdvertised(node); });
    f("absentRails", &NodeSnapshot::absent_rails);
    f.Output("warnings", [](const NodeSnapshot& node) {
      std::vector<std::string> messages;
      for (const Error& warning : node.warnings) messages.push_back(warning.message);
      return messages;
    });
  }
};

Result<NodeSnapshot> TakeSnapshot(const Root& root, const ConfigSource& source,
                                  const inventory::HostNetwork& host, const resources::DdpLookup& ddp,
                                  const inventory::PfReads& reads = {});

// A function of `NodeSnapshot::inventory` that is not in any resource, and why. Accelerators and subfunctions
// only if a resource is of their kind: otherwise other plugins serve them.
struct ExcludedDevice {
  const inventory::NicFunction* function = nullptr;
  std::string because;
  bool selected = false;  // a loss: Exclusion::selected

  static void List(auto& f) {
    f.Part(&ExcludedDevice::function);
    f("because", &ExcludedDevice::because);
  }
};
std::vector<ExcludedDevice> NotAdvertised(const NodeSnapshot& node);

}  // namespace railhead
