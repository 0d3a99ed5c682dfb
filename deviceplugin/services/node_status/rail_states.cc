#include "deviceplugin/services/node_status/rail_states.h"

#include <algorithm>

#include "deviceplugin/services/node_status/node_status_settings.h"
#include "netns/base/text.h"

namespace railhead::node_status {
namespace {

// kubectl shows it on one line.
constexpr std::size_t kMostMessage = 1000;

const health::DeviceHealth* FindHealth(const std::vector<health::DeviceHealth>& devices,
                                       const std::string& id) {
  const auto found = std::ranges::find(devices, id, &health::DeviceHealth::id);
  return found == devices.end() ? nullptr : &*found;
}

bool OnlyDrained(const RailState& rail) {
  return !rail.reasons.empty() && std::ranges::all_of(rail.reasons, [](const health::HealthReason& reason) {
    return reason.rule == health::HealthRule::kDrained;
  });
}

std::string DescribeUnhealthy(const RailState& rail) {
  if (rail.pf.empty()) return rail.rail + ": the node has no PF for it";
  std::vector<std::string> texts;
  texts.reserve(rail.reasons.size());
  for (const health::HealthReason& reason : rail.reasons) texts.push_back(reason.text);
  return rail.rail + ": " + Join(texts, ", ");
}

}  // namespace

std::optional<std::vector<RailState>> RailStates(const std::vector<std::string>& rails,
                                                 const std::map<std::string, std::string>& pfs,
                                                 const std::vector<health::DeviceHealth>& devices) {
  std::vector<RailState> states;
  for (const std::string& rail : rails) {
    RailState state;
    state.rail = rail;
    if (const auto pf = pfs.find(rail); pf != pfs.end()) {
      const health::DeviceHealth* health = FindHealth(devices, pf->second);
      if (health == nullptr) return std::nullopt;
      state.pf = health->pf_name.empty() ? health->id : health->pf_name;
      state.healthy = health->healthy;
      state.reasons = health->reasons;
    }
    states.push_back(std::move(state));
  }
  return states;
}

int HealthyRails(const std::vector<RailState>& rails) {
  return static_cast<int>(std::ranges::count_if(rails, &RailState::healthy));
}

RailsCondition ConditionOf(const std::vector<RailState>& rails) {
  std::vector<std::string> whys;
  bool only_drained = true;
  int unreachable = 0;
  for (const RailState& rail : rails) {
    if (!rail.healthy) {
      whys.push_back(DescribeUnhealthy(rail));
      only_drained = only_drained && OnlyDrained(rail);
    } else if (!rail.unreachable.empty()) {
      whys.push_back(rail.rail + ": " + rail.unreachable);
      ++unreachable;
    }
  }
  const std::string all = std::to_string(rails.size());
  if (whys.empty()) return {true, "AllRailsHealthy", "all " + all + " rails are healthy"};
  std::string message = std::to_string(HealthyRails(rails)) + " of " + all + " rails are healthy";
  if (unreachable > 0) message += ", " + std::to_string(unreachable) + " of them unreachable";
  message += "; " + Join(whys, "; ");
  if (message.size() > kMostMessage) message = message.substr(0, kMostMessage) + "...";
  const char* const reason = !only_drained     ? "RailsUnhealthy"
                             : unreachable > 0 ? "RailsUnreachable"
                                               : "RailsDrained";
  return {false, reason, std::move(message)};
}

bool WantsTaint(const TaintSettings& settings, const std::vector<RailState>& rails) {
  const int wanted = settings.when_rails_below.value_or(static_cast<int>(rails.size()));
  return settings.wanted && HealthyRails(rails) < wanted;
}

}  // namespace railhead::node_status
