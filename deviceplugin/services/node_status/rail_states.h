// What the cluster should see of this node's rails, worked out of what railheadd knows of it.
//
// A rail is whole when the node has a PF for it and no rule of health has hold of that PF. VFs with a trouble
// of their own are kubelet's business: there are others. Threads: pure functions over values.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/node_status/disruption_budget.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "netns/base/result.h"

namespace railhead::node_status {

// What the cluster is to hear of bad rails: fabric.json's object `isolation`.
//
// Threads: values. Errors: kInvalid and kMalformed with the JSON pointer.

struct TaintSettings {
  std::string effect = "NoSchedule";
  std::optional<int> when_rails_below;  // nullopt: as many as the fabric has

  bool operator==(const TaintSettings&) const = default;
};

struct IsolationSettings {
  bool node_condition = false;
  std::optional<TaintSettings> taint;
  // "taint": false. Said, and not only left out: one that is there from before is taken away.
  bool no_taint = false;
  bool events = false;
  MaxUnavailable max_unavailable;
  KubeConfig kubernetes;

  // Whether the Kubernetes API is spoken to at all.
  [[nodiscard]] bool Any() const { return node_condition || taint || no_taint || events; }
  bool operator==(const IsolationSettings&) const = default;
};

// `text`: the object as JSON, "" when there is none; `what` names its file. `rails`: how many the fabric has.
// `all`: every mistake, not only the first.
Result<IsolationSettings> ParseIsolation(const std::string& text, const std::string& what, std::size_t rails,
                                         std::vector<Error>* all = nullptr);

struct RailState {
  std::string rail;
  std::string pf;  // its network device, or address; "": the node has none for it
  bool whole = false;
  std::vector<health::HealthReason> reasons;

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
  std::vector<health::DeviceHealth> devices;
  std::map<std::string, PodDevice> in_pods;  // by device
  bool may_taint = true;                     // disruption_budget.h
};

// `pfs`: rail to device (PfsOfRails). nullopt as long as nothing is known of one of these PFs: railheadd has
// just begun.
std::optional<std::vector<RailState>> RailStates(const std::vector<std::string>& rails,
                                                 const std::map<std::string, std::string>& pfs,
                                                 const std::vector<health::DeviceHealth>& devices);

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

}  // namespace railhead::node_status
