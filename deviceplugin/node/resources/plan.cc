#include "deviceplugin/node/resources/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/ddp_profiles.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/root_file.h"

namespace railhead::resources {
namespace {

Result<void> UseSriovdp(const Root& root, const ConfigSource& source, const std::string& path,
                        const DdpLookup& ddp, Plan* plan) {
  const std::string file = root.Path(path);
  const auto text = RH_TRY(source.is_proposal ? ReadFile(file) : ReadVolumeFile(file));
  if (!text) {
    return Fail(ErrorCode::kNotFound, "reading the configuration " + plan->fabric_path + ": no such file",
                "give railheadd the path of sriov-network-device-plugin's config.json with --config-file");
  }
  plan->config_path = path;
  auto specs = RH_TRY(ParseSriovdpConfig(*text, path, source.resource_prefix));
  for (ResourceSpec& spec : specs) spec.cdi_nodes = source.use_cdi;
  plan->inventory = WithDdpProfiles(plan->inventory, specs, ddp, &plan->warnings);
  plan->pools = BuildPools(specs, *plan->inventory);
  return {};
}

Result<void> UseFabric(const Fabric& fabric, const std::string& path, Plan* plan) {
  plan->config_path = path;
  plan->of_fabric = true;
  plan->pf_of_rail = PfsOfRails(fabric, *plan->inventory);
  for (const Pool& pool : fabric.pools) {
    if (auto valid = CheckResourceName(pool.resource); !valid) {
      return Fail(Wrap(std::move(valid.error()), path + ": /pools"));
    }
  }
  auto resources = ResourcesOfFabric(fabric, *plan->inventory);
  if (!resources) return Fail(Wrap(std::move(resources.error()), path));
  plan->absent_rails = std::move(resources->absent_rails);
  plan->pools = BuildPools(resources->specs, *plan->inventory);
  return {};
}

// What resources lack, once for each PF. A config.json often selects by vendor: the node's own PF is among
// these, and no loss.
void WarnOfExcluded(Plan* plan) {
  std::map<PciAddress, std::vector<ExcludedDevice>> of_pf;
  for (ExcludedDevice& excluded : NotAdvertised(*plan)) {
    const inventory::NicFunction& function = *excluded.function;
    if (excluded.selected && (plan->of_fabric || function.is_vf))
      of_pf[function.pf].push_back(std::move(excluded));
  }
  for (const auto& [pf, devices] : of_pf) {
    std::string text =
        devices.front().function->id + " is not offered to kubelet: it " + devices.front().because;
    if (devices.size() > 1)
      text += "; " + std::to_string(devices.size() - 1) + " more of PF " + pf.ToString() + " are not, either";
    plan->warnings.push_back({ErrorCode::kInvalid, std::move(text), "railctl devices shows all of them", 0});
  }
}

Result<std::optional<Fabric>> ReadFabricOf(const Root& root, const ConfigSource& source,
                                           const std::string& path) {
  if (!source.is_proposal) return ReadFabric(root, path);
  const auto text = RH_TRY(ReadFile(root.Path(path)));
  if (!text) return std::nullopt;
  return RH_TRY(ParseFabric(*text, path));
}

// Addresses come from the fabric, whatever configures the devices.
void TakeAddresses(const Root& root, Plan* plan) {
  plan->fabric_path = kFabricPath;
  auto fabric = ReadFabric(root, kFabricPath);
  if (!fabric) {
    plan->fabric_error = std::move(fabric.error());
  } else if (*fabric) {
    plan->fabric = std::make_shared<const Fabric>(*std::move(*fabric));
  }
}

Result<void> UseConfig(const Root& root, const ConfigSource& source, const DdpLookup& ddp, Plan* plan) {
  if (source.sriovdp) {
    TakeAddresses(root, plan);
    return UseSriovdp(root, source, *source.sriovdp, ddp, plan);
  }
  plan->fabric_path = source.fabric.value_or(kFabricPath);
  auto fabric = RH_TRY(ReadFabricOf(root, source, plan->fabric_path));
  if (fabric) {
    plan->fabric = std::make_shared<const Fabric>(*std::move(fabric));
    return UseFabric(*plan->fabric, plan->fabric_path, plan);
  }
  if (!source.fabric && Exists(root.Path(kSriovdpConfigPath)))
    return UseSriovdp(root, source, kSriovdpConfigPath, ddp, plan);
  return Fail(
      ErrorCode::kNotFound, "reading the configuration " + plan->fabric_path + ": no such file",
      "railctl fabric suggest proposes one, and railctl install config --from DIRECTORY puts it there "
      "(docs/reference/fabric.md); or start railheadd with --fabric, or with --config-file for a config.json "
      "of sriov-network-device-plugin");
}

}  // namespace

Result<Plan> MakePlan(const Root& root, const ConfigSource& source, const inventory::HostNetwork& host,
                      const DdpLookup& ddp, const inventory::PfReads& reads) {
  Plan plan;
  plan.inventory = RH_TRY(Discover(root, host, reads));
  for (const auto& [address, error] : plan.inventory->unreadable)
    plan.warnings.push_back(Wrap(error, "function " + address.ToString() + " is left out"));
  RH_TRY(UseConfig(root, source, ddp, &plan));
  WarnOfExcluded(&plan);
  return plan;
}

std::vector<ExcludedDevice> NotAdvertised(const Plan& plan) {
  std::vector<ExcludedDevice> left_out;
  const auto look = [&](const inventory::NicFunction& function) {
    const bool used =
        std::ranges::any_of(plan.pools, [&](const auto& pool) { return pool->Find(function.id) != nullptr; });
    if (used) return;
    Exclusion why = WhyInNoPool(plan.pools, *plan.inventory, function);
    left_out.push_back({&function, std::move(why.because), why.selected});
  };
  const auto is_wanted = [&](const inventory::NicFunction& function) {
    return std::ranges::any_of(plan.pools,
                               [&](const auto& pool) { return pool->spec.kind == function.kind; });
  };
  for (const inventory::NicFunction& function : plan.inventory->functions) look(function);
  for (const auto* others : {&plan.inventory->accelerators, &plan.inventory->auxiliaries}) {
    for (const inventory::NicFunction& function : *others) {
      if (is_wanted(function)) look(function);
    }
  }
  return left_out;
}

}  // namespace railhead::resources
