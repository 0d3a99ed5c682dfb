#include "deviceplugin/services/node_status/rails_taint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace railhead::node_status {
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
  return taints.is_array() && std::ranges::any_of(taints, IsOurs);
}

}  // namespace railhead::node_status
