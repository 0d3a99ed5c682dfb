#include "deviceplugin/node/resources/advertised.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/resources/sriovdp_config.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/root_file.h"
#include "netns/base/text.h"
#include "netns/nl/devlink_versions.h"

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

namespace {

// Place of a PF in the rail's list of alternatives; a PF by position has place 0.
std::size_t PlaceOf(const Rail& rail, const inventory::NicFunction& pf) {
  const auto named = std::ranges::find_if(
      rail.pfs, [&](const std::string& text) { return text == pf.pf_name || ToLower(text) == pf.id; });
  return static_cast<std::size_t>(named - rail.pfs.begin());
}

Result<void> CheckDeviceNodes(const Fabric& fabric, const Pool& pool, std::size_t index) {
  if (pool.device_nodes != DeviceNodeMode::kMount) return {};
  for (const std::string& name : pool.rails) {
    const Rail* rail = fabric.FindRail(name);
    if (rail == nullptr || !rail->soft_roce) continue;
    return Fail(
        ErrorCode::kInvalid,
        "/pools/" + std::to_string(index) + "/deviceNodes: 'mount' does not work with rail " + name +
            ", which is soft RoCE: its device nodes do not exist when kubelet asks for them",
        R"(use "deviceNodes": "cdi" (containerd 1.7 and later with enable_cdi, CRI-O), or hardware RDMA)");
  }
  return {};
}

}  // namespace

std::map<std::string, std::string> PfsOfRails(const Fabric& fabric, const inventory::Inventory& inventory) {
  std::map<std::string, const inventory::NicFunction*> found;
  for (const inventory::NicFunction& function : inventory.functions) {
    if (function.is_vf) continue;
    const Rail* rail = fabric.RailOfPf(function.pf_name, function.id, inventory.rail_pfs);
    if (rail == nullptr) continue;
    const inventory::NicFunction*& best = found[rail->name];
    if (best == nullptr || PlaceOf(*rail, function) < PlaceOf(*rail, *best)) best = &function;
  }
  std::map<std::string, std::string> pfs;
  for (const auto& [rail, function] : found) pfs[rail] = function->id;
  return pfs;
}

Result<FabricResources> ResourcesOfFabric(const Fabric& fabric, const inventory::Inventory& inventory) {
  const auto pfs = PfsOfRails(fabric, inventory);
  FabricResources resources;
  for (std::size_t n = 0; n < fabric.pools.size(); ++n) {
    const Pool& pool = fabric.pools[n];
    RH_TRY(CheckDeviceNodes(fabric, pool, n));
    ResourceSpec spec;
    spec.resource = pool.resource;
    spec.nccl_config = pool.nccl_config.value_or(fabric.nccl_config);
    spec.device_nodes = pool.device_nodes;
    spec.late = pool.late;
    if (pool.device_nodes == DeviceNodeMode::kMount) spec.rdma_nodes = RdmaNodes::kVerbs;
    Selector selector;
    selector.is_vf = pool.device == PoolDevice::kVf;
    for (std::size_t rank = 0; rank < pool.rails.size(); ++rank) {
      const auto found = pfs.find(pool.rails[rank]);
      if (found == pfs.end()) {
        resources.absent_rails.push_back(pool.rails[rank]);
        continue;
      }
      selector.root_devices.push_back({found->second, {}});
      spec.rails[found->second] = static_cast<int>(rank);
      spec.rail_names[found->second] = pool.rails[rank];
    }
    // Without root devices it would select everything.
    if (!selector.root_devices.empty()) spec.selectors.push_back(std::move(selector));
    resources.specs.push_back(std::move(spec));
  }
  auto& absent = resources.absent_rails;
  std::ranges::sort(absent);
  absent.erase(std::unique(absent.begin(), absent.end()), absent.end());
  return resources;
}

namespace {

constexpr const char* kPackageName = "fw.app.name";

bool SelectsByDdp(const ResourceSpec& spec) {
  return std::ranges::any_of(spec.selectors,
                             [](const Selector& selector) { return !selector.ddp_profiles.empty(); });
}

}  // namespace

DdpLookup DdpOfKernel(const Root& root) {
  if (!root.prefix().empty()) return [](const std::string&) { return DdpAnswer{}; };
  return [](const std::string& pf) {
    auto versions = DevlinkRunningVersions(pf);
    if (!versions) {
      // Without devlink in the kernel no NIC answers, now or later.
      if (versions.error().code == ErrorCode::kUnsupported) return DdpAnswer{};
      Error error = Wrap(std::move(versions.error()), "looking for the DDP profile of " + pf);
      error.hint = "until `devlink dev info pci/" + pf + "` answers, railheadd uses the last known profile";
      return DdpAnswer{{}, std::move(error)};
    }
    const auto name = versions->find(kPackageName);
    return DdpAnswer{name == versions->end() ? std::string() : name->second, std::nullopt};
  };
}

DdpLookup DdpOfKernel(const Root& root, ProbeWorkers& workers) {
  return [lookup = DdpOfKernel(root), &workers](const std::string& pf) {
    auto answer = workers.Ask(pf, [lookup, pf] { return lookup(pf); });
    return answer ? *std::move(answer) : DdpAnswer{{}, std::move(answer.error())};
  };
}

DdpAnswer DdpMemory::Query(const std::string& pf) {
  Known& known = known_[pf];
  if (known.answer.problem && now_() < known.ask_again) return known.answer;
  DdpAnswer answer = lookup_(pf);
  if (!answer.problem) {
    known = {std::move(answer), {}, {}};
    return known.answer;
  }
  known.pause = known.answer.problem ? std::min(known.pause * 2, kLongestPause) : kFirstPause;
  known.answer.problem = std::move(answer.problem);
  // Taken after the answer: a driver that recovers its device may have needed a minute.
  known.ask_again = now_() + known.pause;
  return known.answer;
}

void DdpMemory::KeepOnly(const inventory::Inventory& inventory) {
  std::erase_if(known_, [&](const auto& known) { return inventory.Find(known.first) == nullptr; });
}

std::shared_ptr<const inventory::Inventory> WithDdpProfiles(
    std::shared_ptr<const inventory::Inventory> inventory, const std::vector<ResourceSpec>& specs,
    const DdpLookup& lookup, std::vector<Error>* problems) {
  if (std::ranges::none_of(specs, SelectsByDdp)) return inventory;
  auto with = std::make_shared<inventory::Inventory>(*inventory);
  std::map<PciAddress, std::string> known;
  for (inventory::NicFunction& function : with->functions) {
    const auto [profile, is_new] = known.try_emplace(function.pf);
    if (is_new) {
      DdpAnswer answer = lookup(function.pf.ToString());
      profile->second = std::move(answer.profile);
      if (answer.problem) problems->push_back(*std::move(answer.problem));
    }
    function.ddp_profile = profile->second;
  }
  return with;
}

}  // namespace railhead::resources
