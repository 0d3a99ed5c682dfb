// What the cluster should see of this node's rails, worked out of what railheadd knows of it.
//
// A rail is whole when the node has a PF for it and no rule of health has hold of that PF. VFs with a trouble
// of their own are kubelet's business: there are others. Threads: pure functions over values.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/node_status/node_status_settings.h"

namespace railhead {

struct RailState {
  std::string rail;
  std::string pf;  // its network device, or address; "": the node has none for it
  bool whole = false;
  std::vector<HealthReason> reasons;

  bool operator==(const RailState&) const = default;
};

// A device that a pod has.
struct PodDevice {
  std::string pod_namespace;
  std::string pod;
  std::string uid;
  std::string interface;
  std::string rail;

  bool operator==(const PodDevice&) const = default;
};

struct Situation {
  std::vector<RailState> rails;  // in the fabric's order
  std::vector<DeviceHealth> devices;
  std::map<std::string, PodDevice> in_pods;  // by device
  bool may_taint = true;                     // disruption_budget.h
};

// `pfs`: rail to device (PfsOfRails). nullopt as long as nothing is known of one of these PFs: railheadd has
// just begun.
std::optional<std::vector<RailState>> RailStates(const std::vector<std::string>& rails,
                                                 const std::map<std::string, std::string>& pfs,
                                                 const std::vector<DeviceHealth>& devices);

int WholeRails(const std::vector<RailState>& rails);

// The node's condition RailsReady.
struct RailsCondition {
  bool ready = true;
  std::string reason;   // for programs: AllRailsWhole, RailsDrained, RailsNotWhole
  std::string message;  // for people

  bool operator==(const RailsCondition&) const = default;
};

RailsCondition ConditionOf(const std::vector<RailState>& rails);

bool WantsTaint(const TaintSettings& settings, const std::vector<RailState>& rails);

// The taint that keeps pods from a node with fewer whole rails than it should have.
//
// Threads: pure functions.

inline constexpr const char* kRailsTaint = "railhead.io/rails-not-ready";

// What spec.taints of a node (an array, or null) should be; nullopt: it is so. `effect` "": ours is not
// wanted. Those of others stay as they are.
std::optional<nlohmann::json> ChangedTaints(const nlohmann::json& taints, const std::string& effect);

// Whether ours is among them.
bool HasRailsTaint(const nlohmann::json& taints);

}  // namespace railhead
