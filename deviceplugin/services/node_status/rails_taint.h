// The taint that keeps pods away from a node with too few healthy rails.
//
// Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace railhead::node_status {

inline constexpr const char* kRailsTaint = "railhead.io/rails-not-ready";

// The new spec.taints of a node (an array, or null); nullopt: no change. `effect` "": our taint is to go.
// Taints of others stay.
std::optional<nlohmann::json> ChangedTaints(const nlohmann::json& taints, const std::string& effect);

// Whether our taint is among them.
bool HasRailsTaint(const nlohmann::json& taints);

}  // namespace railhead::node_status
