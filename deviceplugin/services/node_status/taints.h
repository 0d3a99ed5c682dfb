// The taint that keeps pods from a node with fewer whole rails than it should have.
//
// Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace railhead {

inline constexpr const char* kRailsTaint = "railhead.io/rails-not-ready";

// What spec.taints of a node (an array, or null) should be; nullopt: it is so. `effect` "": ours is not
// wanted. Those of others stay as they are.
std::optional<nlohmann::json> ChangedTaints(const nlohmann::json& taints, const std::string& effect);

// Whether ours is among them.
bool HasRailsTaint(const nlohmann::json& taints);

}  // namespace railhead
