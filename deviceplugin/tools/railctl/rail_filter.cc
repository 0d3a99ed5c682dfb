#include "deviceplugin/tools/railctl/rail_filter.h"

#include <algorithm>

#include "deviceplugin/node/inventory/inventory.h"
#include "deviceplugin/node/resources/fabric_resources.h"
#include "netns/base/text.h"

namespace railhead::railctl {

CLI::Option* RailFilter::AddTo(CLI::App* command) {
  return command->add_option("--rail", rail_, "only this rail: rail0");
}

Result<void> RailFilter::CheckAmong(const std::vector<std::string>& rails) const {
  if (rail_.empty() || Contains(rails, rail_)) return {};
  return Fail(
      ErrorCode::kNotFound, "no such rail: '" + rail_ + "'",
      rails.empty() ? "fabric.json names the rails, and this node has none" : "rails: " + Join(rails, ", "));
}

std::vector<std::string> NodeRails::Names() const {
  std::vector<std::string> names;
  for (const Rail& rail : rails) names.push_back(rail.name);
  return names;
}

std::string NodeRails::OfPf(const std::string& pf) const {
  const auto found = of_pf.find(pf);
  return found == of_pf.end() ? std::string() : found->second;
}

std::string NodeRails::OfAddress(const IpAddress& address) const {
  const auto has_it = [&](const Rail& rail) { return rail.subnet && rail.subnet->Contains(address); };
  const auto found = std::ranges::find_if(rails, has_it);
  return found == rails.end() ? std::string() : found->name;
}

Result<NodeRails> ReadNodeRails(const Root& root) {
  NodeRails node;
  const auto fabric = RH_TRY(ReadFabric(root));
  if (!fabric) return node;
  const auto inventory = RH_TRY(inventory::Discover(root, inventory::HostNetwork{}));
  for (const auto& [rail, pf] : resources::PfsOfRails(*fabric, *inventory)) node.of_pf[pf] = rail;
  node.rails = fabric->rails;
  return node;
}

Result<std::optional<NodeRails>> RailsToFilterBy(const Root& root, const RailFilter& filter) {
  if (!filter.IsGiven()) return std::nullopt;
  auto rails = RH_TRY(ReadNodeRails(root));
  RH_TRY(filter.CheckAmong(rails.Names()));
  return std::optional<NodeRails>(std::move(rails));
}

}  // namespace railhead::railctl
