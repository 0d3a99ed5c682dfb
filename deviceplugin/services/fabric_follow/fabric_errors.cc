#include "deviceplugin/services/fabric_follow/fabric_errors.h"

#include <iterator>
#include <nlohmann/json.hpp>
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

std::vector<Error> ErrorsInFabric(const std::string& text, const std::string& what) {
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

Result<void> CheckSections(const Fabric& fabric, const std::string& what) {
  RH_TRY(provision::ReadProvisionSettings(fabric, what));
  RH_TRY(node_index::IndexConfigOf(fabric, what));
  RH_TRY(reachability::ParseReachabilitySettings(fabric.reachability, what));
  RH_TRY(node_status::ParseNodeStatusSettings(fabric.node_status, what, fabric.rails.size()));
  return {};
}

}  // namespace railhead::fabric_follow
