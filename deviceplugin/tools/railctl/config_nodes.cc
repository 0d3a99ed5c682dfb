#include "deviceplugin/tools/railctl/config_nodes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "cni/fabric/add_refusals.h"
#include "cni/fabric/node_pattern.h"
#include "deviceplugin/services/fabric_follow/fabric_errors.h"
#include "deviceplugin/tools/railctl/config_warnings.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/json/record_forms.h"

namespace railhead::railctl {
namespace {

// A list of 10,000 nodes has about 150 MB.
constexpr std::size_t kLargestNodeList = std::size_t{1} << 30;

using GroupSet = std::vector<const NodeGroup*>;

// Nodes with the same groups have the same fabric.
std::map<GroupSet, std::vector<std::string>> BySet(const FabricBase& base,
                                                   const std::vector<std::string>& nodes) {
  std::map<GroupSet, std::vector<std::string>> sets;
  for (const std::string& node : nodes) sets[base.GroupsOf(node)].push_back(node);
  return sets;
}

std::vector<std::string> RailsWithSubnetOfGroup(const FabricBase& base) {
  std::set<std::string> rails;
  for (const NodeGroup& group : base.fabric().node_groups) {
    const auto of_rails = group.overrides.find("rails");
    if (of_rails == group.overrides.end()) continue;
    const auto changes = nlohmann::json::parse(of_rails->second);
    for (const auto& [rail, change] : changes.items()) {
      if (change.is_object() && change.contains("subnet")) rails.insert(rail);
    }
  }
  return {rails.begin(), rails.end()};
}

std::string AndOthers(const std::vector<std::string>& nodes) {
  return nodes.size() == 1 ? "" : "; " + std::to_string(nodes.size() - 1) + " more nodes have none, either";
}

}  // namespace

GroupedNode NodeWithGroups(const FabricBase& base, const std::string& node) {
  GroupedNode grouped{node, {}, base.fabric().IndexOf(node), base.ValuesOf(node)};
  for (const NodeGroup* group : base.GroupsOf(node)) grouped.groups.push_back(group->name);
  return grouped;
}

std::vector<GroupSize> GroupSizes(const FabricBase& base, const std::vector<std::string>& nodes) {
  std::map<const NodeGroup*, std::size_t> sizes;
  std::size_t without = 0;
  for (const std::string& node : nodes) {
    const auto groups = base.GroupsOf(node);
    for (const NodeGroup* group : groups) ++sizes[group];
    if (groups.empty()) ++without;
  }
  std::vector<GroupSize> result;
  for (const NodeGroup& group : base.fabric().node_groups) result.push_back({group.name, sizes[&group]});
  if (without > 0) result.push_back({"", without});
  return result;
}

std::vector<Error> ErrorsForNodes(const FabricBase& base, const std::vector<std::string>& nodes) {
  std::vector<Error> errors = fabric_follow::ErrorsOfNodes(base, nodes);
  if (!errors.empty()) return errors;
  const auto rails = RailsWithSubnetOfGroup(base);
  for (const auto& [set, names] : BySet(base, nodes)) {
    const auto fabric = base.FabricOf(names.front());
    if (!fabric) continue;
    for (const std::string& name : rails) {
      const Rail* rail = fabric->FindRail(name);
      if (rail == nullptr || rail->subnet) continue;
      Error why = WhyNoSubnet(*fabric);
      why.message.insert(0, base.PlaceOf(names.front()) + ": rail '" + name + "' ");
      why.message += AndOthers(names);
      errors.push_back(std::move(why));
    }
  }
  return errors;
}

std::vector<Error> WarningsForNodes(const FabricBase& base, const std::string& what,
                                    const std::vector<std::string>& nodes) {
  std::vector<Error> warnings;
  for (const auto& [set, names] : BySet(base, nodes)) {
    auto fabric = base.FabricOf(names.front());
    if (!fabric) continue;
    const std::set<std::string> of_set(names.begin(), names.end());
    std::erase_if(fabric->nodes, [&](const auto& one) { return !of_set.contains(one.first); });
    std::ranges::move(WarningsOf(*fabric, base.PlaceOf(names.front())), std::back_inserter(warnings));
  }
  for (std::size_t i = 0; i < base.fabric().node_groups.size(); ++i) {
    const NodeGroup& group = base.fabric().node_groups[i];
    for (std::size_t j = 0; j < group.nodes.size(); ++j) {
      const auto matches = [&](const std::string& node) { return MatchesNodePattern(group.nodes[j], node); };
      if (nodes.empty() || std::ranges::any_of(nodes, matches)) continue;
      warnings.push_back({ErrorCode::kInvalid,
                          what + ": /" + PointerOf("nodeGroups", i, "nodes", j) + ": no node matches '" +
                              group.nodes[j] + "' of group '" + group.name + "'",
                          "compare it with kubectl get nodes", 0});
    }
  }
  return warnings;
}

Result<std::vector<std::string>> ReadNodeNames(const Root& root, const std::string& path) {
  const auto text = RH_TRY(ReadFile(root.Path(path), kLargestNodeList));
  if (!text) return Fail(ErrorCode::kNotFound, "no such file: " + path, "kubectl get nodes -o json >" + path);
  std::vector<std::string> names;
  if (!text->starts_with("{")) {
    std::istringstream lines(*text);
    for (std::string name; lines >> name;) names.push_back(name.substr(name.starts_with("node/") ? 5 : 0));
    return names;
  }
  // Only what leads to the names is kept.
  constexpr std::array kKept = {"items", "metadata", "name"};
  const nlohmann::json list = nlohmann::json::parse(
      *text,
      [&](int /*depth*/, nlohmann::json::parse_event_t event, nlohmann::json& key) {
        return event != nlohmann::json::parse_event_t::key ||
               std::ranges::find(kKept, key.get<std::string>()) != kKept.end();
      },
      false);
  if (!list.is_object() || !list.contains("items")) {
    return Fail(ErrorCode::kMalformed, path + ": is not a list of nodes",
                "give names, one a line, or what `kubectl get nodes -o json` prints");
  }
  for (const nlohmann::json& item : list["items"]) {
    const std::string name = item.value("/metadata/name"_json_pointer, std::string());
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace railhead::railctl
