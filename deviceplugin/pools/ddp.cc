#include "deviceplugin/pools/ddp.h"

#include <algorithm>
#include <map>

#include "netns/nl/devlink_info.h"

namespace railhead {
namespace {

constexpr const char* kPackageName = "fw.app.name";

bool SelectsByDdp(const ResourceSpec& spec) {
  return std::any_of(spec.selectors.begin(), spec.selectors.end(),
                     [](const Selector& selector) { return !selector.ddp_profiles.empty(); });
}

}  // namespace

DdpLookup DdpOfKernel(const Root& root) {
  if (!root.prefix().empty()) return [](const std::string&) { return std::string(); };
  return [](const std::string& pf) {
    const auto versions = DevlinkRunningVersions(pf);
    if (!versions) return std::string();
    const auto name = versions->find(kPackageName);
    return name == versions->end() ? std::string() : name->second;
  };
}

std::shared_ptr<const Inventory> WithDdpProfiles(std::shared_ptr<const Inventory> inventory,
                                                 const std::vector<ResourceSpec>& specs,
                                                 const DdpLookup& lookup) {
  if (std::none_of(specs.begin(), specs.end(), SelectsByDdp)) return inventory;
  auto with = std::make_shared<Inventory>(*inventory);
  std::map<PciAddress, std::string> known;
  for (NicFunction& function : with->functions) {
    const auto [profile, is_new] = known.try_emplace(function.pf);
    if (is_new) profile->second = lookup(function.pf.ToString());
    function.ddp_profile = profile->second;
  }
  return with;
}

}  // namespace railhead
