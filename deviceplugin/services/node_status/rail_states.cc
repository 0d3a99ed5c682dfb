#include "deviceplugin/services/node_status/rail_states.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "netns/base/text.h"

namespace railhead {
namespace {

// kubectl shows it on one line.
constexpr std::size_t kMostMessage = 1000;

const DeviceHealth* FindHealth(const std::vector<DeviceHealth>& devices, const std::string& id) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const DeviceHealth& one) { return one.id == id; });
  return found == devices.end() ? nullptr : &*found;
}

bool OnlyDrained(const RailState& rail) {
  return !rail.reasons.empty() &&
         std::all_of(rail.reasons.begin(), rail.reasons.end(),
                     [](const HealthReason& reason) { return reason.rule == HealthRule::kDrained; });
}

std::string WhyNotWhole(const RailState& rail) {
  if (rail.pf.empty()) return rail.rail + ": the node has no PF for it";
  std::vector<std::string> texts;
  texts.reserve(rail.reasons.size());
  for (const HealthReason& reason : rail.reasons) texts.push_back(reason.text);
  return rail.rail + ": " + Join(texts, ", ");
}

}  // namespace

std::optional<std::vector<RailState>> RailStates(const std::vector<std::string>& rails,
                                                 const std::map<std::string, std::string>& pfs,
                                                 const std::vector<DeviceHealth>& devices) {
  std::vector<RailState> states;
  for (const std::string& rail : rails) {
    RailState state;
    state.rail = rail;
    if (const auto pf = pfs.find(rail); pf != pfs.end()) {
      const DeviceHealth* health = FindHealth(devices, pf->second);
      if (health == nullptr) return std::nullopt;
      state.pf = health->pf_name.empty() ? health->id : health->pf_name;
      state.whole = health->healthy;
      state.reasons = health->reasons;
    }
    states.push_back(std::move(state));
  }
  return states;
}

int WholeRails(const std::vector<RailState>& rails) {
  return static_cast<int>(
      std::count_if(rails.begin(), rails.end(), [](const RailState& rail) { return rail.whole; }));
}

RailsCondition ConditionOf(const std::vector<RailState>& rails) {
  std::vector<std::string> whys;
  bool only_drained = true;
  for (const RailState& rail : rails) {
    if (rail.whole) continue;
    whys.push_back(WhyNotWhole(rail));
    only_drained = only_drained && OnlyDrained(rail);
  }
  const std::string all = std::to_string(rails.size());
  if (whys.empty()) return {true, "AllRailsWhole", "all " + all + " rails are whole"};
  std::string message =
      std::to_string(WholeRails(rails)) + " of " + all + " rails are whole; " + Join(whys, "; ");
  if (message.size() > kMostMessage) message = message.substr(0, kMostMessage) + "...";
  return {false, only_drained ? "RailsDrained" : "RailsNotWhole", std::move(message)};
}

bool WantsTaint(const TaintSettings& settings, const std::vector<RailState>& rails) {
  const int wanted = settings.when_rails_below.value_or(static_cast<int>(rails.size()));
  return WholeRails(rails) < wanted;
}

namespace {

bool IsOurs(const nlohmann::json& taint) {
  return taint.is_object() && taint.value("key", "") == kRailsTaint;
}

}  // namespace

std::optional<nlohmann::json> ChangedTaints(const nlohmann::json& taints, const std::string& effect) {
  nlohmann::json wanted = nlohmann::json::array();
  bool there = false;
  bool changed = false;
  for (const nlohmann::json& taint : taints.is_array() ? taints : nlohmann::json::array()) {
    const bool keep = !IsOurs(taint) || (!there && taint.value("effect", "") == effect);
    there = there || (keep && IsOurs(taint));
    changed = changed || !keep;
    if (keep) wanted.push_back(taint);
  }
  if (!effect.empty() && !there) {
    wanted.push_back({{"key", kRailsTaint}, {"effect", effect}});
    changed = true;
  }
  return changed ? std::optional(std::move(wanted)) : std::nullopt;
}

bool HasRailsTaint(const nlohmann::json& taints) {
  return taints.is_array() && std::any_of(taints.begin(), taints.end(), IsOurs);
}

}  // namespace railhead
