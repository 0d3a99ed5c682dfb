#include "deviceplugin/tools/fabric_suggest/present.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace railhead::fabric_suggest {
namespace {

// The rail most of whose PFs the fabric has as `rail`; nullopt: it has none of them.
std::optional<std::size_t> BestOf(const std::vector<AlignedRail>& aligned, const std::vector<bool>& taken,
                                  const Fabric& present, const Rail& rail) {
  std::optional<std::size_t> best;
  std::ptrdiff_t most = 0;
  for (std::size_t i = 0; i < aligned.size(); ++i) {
    if (taken[i]) continue;
    const auto count = std::ranges::count_if(aligned[i].members, [&](const RailMember& member) {
      return RailInFabric(&present, *member.node, *member.pf) == &rail;
    });
    if (count <= most) continue;
    most = count;
    best = i;
  }
  return best;
}

void NameOtherPfs(const Fabric& present, const Rail& rail, const AlignedRail& aligned, Findings* findings) {
  for (const RailMember& member : aligned.members) {
    const Rail* found = RailInFabric(&present, *member.node, *member.pf);
    if (found == &rail) continue;
    findings->Contradict(rail.name, "pf", member.node->node,
                         found == nullptr
                             ? "the fabric finds no rail for the PF " + member.pf->device
                             : "the fabric has the PF " + member.pf->device + " as " + found->name);
  }
}

// Whether a pod may get the address.
bool MayGive(const Rail& rail, const IpAddress& address) {
  const auto contains = [&](const IpRange& range) { return range.first <= address && address <= range.last; };
  if (std::ranges::any_of(rail.Excluded(), contains)) return false;
  return rail.node_ranges.empty() || std::ranges::any_of(rail.node_ranges, [&](const auto& node) {
           return std::ranges::any_of(node.second, contains);
         });
}

void CompareExclude(const Rail& rail, const Rail& shown, Findings* findings) {
  std::vector<std::string> missing;
  for (const IpRange& range : shown.exclude) {
    for (IpAddress address = range.first;; address = address.Plus(1)) {
      if (MayGive(rail, address)) missing.push_back(address.ToString());
      if (address == range.last) break;
    }
  }
  if (missing.empty()) return;
  findings->Contradict(rail.name, "exclude", "",
                       "hosts have " + std::to_string(missing.size()) + " addresses, first " +
                           missing.front() + ", that the fabric may give to pods: exclude lacks them");
}

}  // namespace

void TakeNames(const Fabric& present, std::vector<AlignedRail>* aligned, Findings* findings) {
  std::vector<AlignedRail> rails;
  std::map<std::string, std::string> renamed;
  Findings with_new_names;
  std::vector<bool> taken(aligned->size());
  for (const Rail& rail : present.rails) {
    AlignedRail& kept = rails.emplace_back(AlignedRail{rail.name, {}});
    const auto best = BestOf(*aligned, taken, present, rail);
    if (!best) {
      with_new_names.Contradict(rail.name, "pf", "", "no node has a PF for it");
      continue;
    }
    taken[*best] = true;
    kept.members = std::move((*aligned)[*best].members);
    renamed[(*aligned)[*best].name] = rail.name;
    NameOtherPfs(present, rail, kept, &with_new_names);
  }
  std::size_t number = present.rails.size();
  for (std::size_t i = 0; i < aligned->size(); ++i) {
    if (taken[i] || rails.size() == kMostRails) continue;
    while (present.FindRail("rail" + std::to_string(number)) != nullptr) ++number;
    renamed[(*aligned)[i].name] = "rail" + std::to_string(number);
    rails.push_back({"rail" + std::to_string(number++), std::move((*aligned)[i].members)});
  }
  const auto rename = [&](std::string* rail) {
    const auto found = renamed.find(*rail);
    if (found != renamed.end()) *rail = found->second;
  };
  *aligned = std::move(rails);
  for (Guess& guess : findings->guesses) rename(&guess.rail);
  for (Contradiction& one : findings->contradictions) rename(&one.rail);
  for (Contradiction& one : with_new_names.contradictions) findings->contradictions.push_back(std::move(one));
}

void CompareRail(const Rail& rail, const Rail& shown, const std::set<std::string>& switches,
                 Findings* findings) {
  const auto differs = [&](const std::string& key, const std::string& has, const std::string& shows) {
    findings->Contradict(rail.name, key, "",
                         "the fabric has " + key + " " + has + ", the nodes show " + shows);
  };
  if (rail.mtu && shown.mtu && *rail.mtu != *shown.mtu)
    differs("mtu", std::to_string(*rail.mtu), std::to_string(*shown.mtu));
  for (const std::string& name : switches) {
    const auto matches = [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    };
    if (!rail.expected_switches.empty() && std::ranges::none_of(rail.expected_switches, matches))
      findings->Contradict(rail.name, "switch", "",
                           "it is connected to " + name + ", which expectedSwitches of the fabric lacks");
  }
  // Addresses in another VLAN are other ones.
  if (shown.vlan != rail.vlan) {
    if (shown.vlan)
      differs("vlan", rail.vlan ? std::to_string(*rail.vlan) : "none", std::to_string(*shown.vlan));
    return;
  }
  if (!rail.subnet || !shown.subnet) return;
  // Hosts have addresses of their own networks.
  if (rail.node_subnet && rail.subnet->Contains(*shown.subnet)) return;
  if (*rail.subnet != *shown.subnet)
    return differs("subnet", rail.subnet->ToString(), shown.subnet->ToString());
  if (rail.gateway && shown.gateway && rail.GatewayOf(*rail.subnet) != shown.gateway->address)
    differs("gateway", rail.gateway->ToString(), shown.gateway->ToString());
  CompareExclude(rail, shown, findings);
}

}  // namespace railhead::fabric_suggest
