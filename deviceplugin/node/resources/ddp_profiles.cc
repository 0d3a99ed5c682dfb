#include "deviceplugin/node/resources/ddp_profiles.h"

#include <algorithm>
#include <utility>

#include "deviceplugin/node/resources/selector.h"
#include "netns/base/result.h"
#include "netns/nl/devlink_versions.h"

namespace railhead::resources {
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
