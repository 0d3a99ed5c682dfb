#include "deviceplugin/services/fabric_follow/fabric_errors.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/node_index/index_config.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
#include "netns/json/json_reader.h"

namespace railhead::fabric_follow {
namespace {

// The object of that name as text, whatever else is wrong with the file.
std::string SectionIn(const Result<JsonDocument>& document, const char* key) {
  if (!document) return {};
  JsonReader root = document->Root();
  const auto* value = root.Raw(key);
  return value == nullptr ? std::string() : value->dump();
}

}  // namespace

// Of a fabric without regard to its groups.
std::vector<Error> ErrorsInOne(const std::string& text, const std::string& what) {
  std::vector<Error> errors;
  const auto look = [&](const auto& parse, const auto&... of) {
    std::vector<Error> found;
    auto parsed = parse(of..., what, &found);
    // The list does not have the error of text that is not JSON.
    if (!parsed && found.empty()) found.push_back(parsed.error());
    std::move(found.begin(), found.end(), std::back_inserter(errors));
    return parsed;
  };
  const auto fabric = look(ParseFabric, text);
  const auto document = JsonDocument::Parse(text, what);
  (void)look(health::ParseHealthRules, SectionIn(document, "health"));
  (void)look(reachability::ParseReachabilitySettings, SectionIn(document, "reachability"));
  // The other sections name rails. With an invalid fabric each of these names would be an error.
  if (!fabric) return errors;
  (void)look(provision::ReadProvisionSettings, *fabric);
  (void)look([&](const std::string& file, std::vector<Error>* all) {
    return node_status::ParseNodeStatusSettings(fabric->node_status, file, fabric->rails.size(), all);
  });
  (void)look([&](const std::string& file, std::vector<Error>* all) {
    return node_index::IndexConfigOf(*fabric, file, all);
  });
  // What railheadd cannot do is so on a node without NICs, too.
  if (const auto resources = resources::ResourcesOfFabric(*fabric, inventory::Inventory{}); !resources)
    errors.push_back(Wrap(resources.error(), what));
  return errors;
}

namespace {

void Append(std::vector<Error> more, std::vector<Error>* errors) {
  std::move(more.begin(), more.end(), std::back_inserter(*errors));
}

}  // namespace

std::vector<Error> ErrorsOfNodes(const FabricBase& base, const std::vector<std::string>& nodes) {
  std::vector<Error> errors;
  std::set<std::vector<const NodeGroup*>> seen;
  for (const std::string& node : nodes) {
    const auto groups = base.GroupsOf(node);
    if (auto listed = base.CheckIndex(node); !listed) errors.push_back(std::move(listed.error()));
    // One group over the base has been checked by itself.
    if (groups.size() < 2 || !seen.insert(groups).second) continue;
    if (const auto text = base.TextOf(node)) {
      Append(ErrorsInOne(*text, base.PlaceOf(node)), &errors);
    } else {
      errors.push_back(text.error());
    }
  }
  return errors;
}

std::vector<Error> ErrorsInFabric(const std::string& text, const std::string& what) {
  std::vector<Error> errors = ErrorsInOne(text, what);
  const auto base = FabricBase::Parse(text, what);
  if (!base || base->fabric().node_groups.empty()) return errors;
  for (const NodeGroup& group : base->fabric().node_groups) {
    if (const auto alone = base->TextOfGroup(group))
      Append(ErrorsInOne(*alone, what + ": group '" + group.name + "' over the base"), &errors);
  }
  Append(base->SubnetConflicts(), &errors);
  std::vector<std::string> nodes;
  for (const auto& [node, index] : base->fabric().nodes) nodes.push_back(node);
  Append(ErrorsOfNodes(*base, nodes), &errors);
  return errors;
}

Result<void> CheckSections(const Fabric& fabric, const std::string& what) {
  RH_TRY(provision::ReadProvisionSettings(fabric, what));
  RH_TRY(node_index::IndexConfigOf(fabric, what));
  RH_TRY(reachability::ParseReachabilitySettings(fabric.reachability, what));
  RH_TRY(node_status::ParseNodeStatusSettings(fabric.node_status, what, fabric.rails.size()));
  return {};
}

}  // namespace railhead::fabric_follow
