#include "deviceplugin/services/discovery/node_change.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "netns/base/text.h"

namespace railhead::discovery {
namespace {

std::map<std::string, std::set<std::string>> DevicesOf(const NodeSnapshot& node) {
  std::map<std::string, std::set<std::string>> devices;
  for (const auto& pool : node.pools) {
    auto& ids = devices[pool->spec.resource];
    for (const resources::PoolMember& member : pool->members) ids.insert(member.function.id);
  }
  return devices;
}

std::vector<std::string> Without(const std::set<std::string>& all, const std::set<std::string>& these) {
  std::vector<std::string> others;
  std::set_difference(all.begin(), all.end(), these.begin(), these.end(), std::back_inserter(others));
  return others;
}

}  // namespace

NodeChange Difference(const NodeSnapshot& before, const NodeSnapshot& now) {
  auto old_devices = DevicesOf(before);
  auto new_devices = DevicesOf(now);
  NodeChange change;
  for (const auto& [resource, ids] : new_devices) {
    const auto old = old_devices.find(resource);
    const bool is_new = old == old_devices.end();
    auto added = Without(ids, is_new ? std::set<std::string>{} : old->second);
    auto removed = Without(is_new ? std::set<std::string>{} : old->second, ids);
    if (is_new || !added.empty() || !removed.empty())
      change.resources[resource] = {std::move(added), std::move(removed)};
  }
  for (const auto& [resource, ids] : old_devices) {
    if (!new_devices.contains(resource)) change.resources[resource] = {{}, {ids.begin(), ids.end()}};
  }
  return change;
}

bool OnlyTakesAway(const NodeChange& change) {
  return !change.resources.empty() && std::ranges::all_of(change.resources, [](const auto& resource) {
    return resource.second.added.empty();
  });
}

void LogFirstReading(Log* log, const NodeSnapshot& node) {
  for (const std::string& rail : node.absent_rails) {
    log->Warning("this node has no PF for a rail", {{"rail", rail}, {"config", node.config_path}});
  }
  for (const auto& pool : node.pools) {
    log->Info("advertising",
              {{"resource", pool->spec.resource}, {"devices", std::to_string(pool->members.size())}});
  }
}

void LogNodeChange(Log* log, const NodeChange& change) {
  for (const NodeChange::Warning& warning : change.warnings) log->Warning(warning.what, warning.why);
  if (!change.note.empty()) log->Info(change.note);
  if (!change.warnings.empty() || !change.note.empty()) return;
  if (change.error)
    return log->Failure("discovery failed; the last valid configuration stays in use", *change.error);
  if (change.resources.empty()) log->Info("discovery succeeds again");
  for (const auto& [resource, devices] : change.resources) {
    log->Info("advertised devices changed", {{"resource", resource},
                                             {"added", Join(devices.added, ",")},
                                             {"removed", Join(devices.removed, ",")}});
  }
}

}  // namespace railhead::discovery
