#include "deviceplugin/node/snapshot/node_snapshot.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/fabric/fabric_base.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/root_file.h"

namespace railhead {
namespace {

Result<void> UseSriovdp(const Root& root, const ConfigSource& source, const std::string& path,
                        const resources::DdpLookup& ddp, NodeSnapshot* node) {
  const std::string file = root.Path(path);
  const auto text = RH_TRY(source.is_proposal ? ReadFile(file) : ReadVolumeFile(file));
  if (!text) {
    return Fail(ErrorCode::kNotFound, "reading the configuration " + node->fabric_path + ": no such file",
                "give railheadd the path of sriov-network-device-plugin's config.json with --config-file");
  }
  node->config_path = path;
  auto specs = RH_TRY(resources::ParseSriovdpConfig(*text, path, source.resource_prefix));
  for (resources::ResourceSpec& spec : specs) spec.cdi_nodes = source.use_cdi;
  node->inventory = WithDdpProfiles(node->inventory, specs, ddp, &node->warnings);
  node->pools = BuildPools(specs, *node->inventory);
  return {};
}

Result<void> UseFabric(const Fabric& fabric, const std::string& path, NodeSnapshot* node) {
  node->config_path = path;
  node->of_fabric = true;
  node->pf_of_rail = resources::PfsOfRails(fabric, *node->inventory);
  for (const Pool& pool : fabric.pools) {
    if (auto valid = resources::CheckResourceName(pool.resource); !valid) {
      return Fail(Wrap(std::move(valid.error()), path + ": /pools"));
    }
  }
  auto resources = resources::ResourcesOfFabric(fabric, *node->inventory);
  if (!resources) return Fail(Wrap(std::move(resources.error()), path));
  node->absent_rails = std::move(resources->absent_rails);
  node->pools = BuildPools(resources->specs, *node->inventory);
  return {};
}

// What resources lack, once for each PF. A config.json often selects by vendor: the node's own PF is among
// these, and no loss.
void WarnOfExcluded(NodeSnapshot* node) {
  std::map<PciAddress, std::vector<ExcludedDevice>> of_pf;
  for (ExcludedDevice& excluded : NotAdvertised(*node)) {
    const inventory::NicFunction& function = *excluded.function;
    if (excluded.selected && (node->of_fabric || function.is_vf))
      of_pf[function.pf].push_back(std::move(excluded));
  }
  for (const auto& [pf, devices] : of_pf) {
    std::string text =
        devices.front().function->id + " is not offered to kubelet: it " + devices.front().because;
    if (devices.size() > 1)
      text += "; " + std::to_string(devices.size() - 1) + " more of PF " + pf.ToString() + " are not, either";
    node->warnings.push_back({ErrorCode::kInvalid, std::move(text), "railctl devices shows all of them", 0});
  }
}

Result<std::optional<Fabric>> ReadFabricOf(const Root& root, const ConfigSource& source,
                                           const std::string& path) {
  if (!source.is_proposal) return ReadFabric(root, path);
  const auto text = RH_TRY(ReadFile(root.Path(path)));
  if (!text) return std::nullopt;
  const std::string name = RH_TRY(NodeName(root));
  return RH_TRY(ParseFabricOf(name, *text, path));
}

// Addresses come from the fabric, whatever configures the devices.
void TakeAddresses(const Root& root, NodeSnapshot* node) {
  node->fabric_path = kFabricPath;
  auto fabric = ReadFabric(root, kFabricPath);
  if (!fabric) {
    node->fabric_error = std::move(fabric.error());
  } else if (*fabric) {
    node->fabric = std::make_shared<const Fabric>(*std::move(*fabric));
  }
}

Result<void> UseConfig(const Root& root, const ConfigSource& source, const resources::DdpLookup& ddp,
                       NodeSnapshot* node) {
  if (source.sriovdp) {
    TakeAddresses(root, node);
    return UseSriovdp(root, source, *source.sriovdp, ddp, node);
  }
  node->fabric_path = source.fabric.value_or(kFabricPath);
  auto fabric = RH_TRY(ReadFabricOf(root, source, node->fabric_path));
  if (fabric) {
    node->fabric = std::make_shared<const Fabric>(*std::move(fabric));
    return UseFabric(*node->fabric, node->fabric_path, node);
  }
  if (!source.fabric && Exists(root.Path(kSriovdpConfigPath)))
    return UseSriovdp(root, source, kSriovdpConfigPath, ddp, node);
  return Fail(
      ErrorCode::kNotFound, "reading the configuration " + node->fabric_path + ": no such file",
      "railctl fabric suggest proposes one, and railctl install config --from DIRECTORY puts it there "
      "(docs/reference/fabric.md); or start railheadd with --fabric, or with --config-file for a config.json "
      "of sriov-network-device-plugin");
}

}  // namespace

Result<NodeSnapshot> TakeSnapshot(const Root& root, const ConfigSource& source,
                                  const inventory::HostNetwork& host, const resources::DdpLookup& ddp,
                                  const inventory::PfReads& reads) {
  NodeSnapshot node;
  node.inventory = RH_TRY(Discover(root, host, reads));
  for (const auto& [address, error] : node.inventory->unreadable)
    node.warnings.push_back(Wrap(error, "function " + address.ToString() + " is left out"));
  RH_TRY(UseConfig(root, source, ddp, &node));
  WarnOfExcluded(&node);
  return node;
}

std::vector<ExcludedDevice> NotAdvertised(const NodeSnapshot& node) {
  std::vector<ExcludedDevice> left_out;
  const auto look = [&](const inventory::NicFunction& function) {
    const bool used =
        std::ranges::any_of(node.pools, [&](const auto& pool) { return pool->Find(function.id) != nullptr; });
    if (used) return;
    resources::Exclusion why = WhyInNoPool(node.pools, *node.inventory, function);
    left_out.push_back({&function, std::move(why.because), why.selected});
  };
  const auto is_wanted = [&](const inventory::NicFunction& function) {
    return std::ranges::any_of(node.pools,
                               [&](const auto& pool) { return pool->spec.kind == function.kind; });
  };
  for (const inventory::NicFunction& function : node.inventory->functions) look(function);
  for (const auto* others : {&node.inventory->accelerators, &node.inventory->auxiliaries}) {
    for (const inventory::NicFunction& function : *others) {
      if (is_wanted(function)) look(function);
    }
  }
  return left_out;
}

}  // namespace railhead
