// NodeStatus: what the cluster sees of this node's rails.
//
// A rail is healthy when its PF exists and no health rule is active on it. A single unhealthy VF does not
// affect the rail: it is only reported to kubelet. A rail on which probes reach nothing is reported, and no
// more: packets of others must not take it out of use. Threads: pure functions over values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/health/device_health.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"
#include "netns/json/record.h"

namespace railhead::node_status {

// What railheadd reports to the cluster: fabric.json's object `nodeStatus`.
//
// Threads: values. Errors: kInvalid and kMalformed with the JSON pointer.

// As Kubernetes has them, but for NoExecute: pods that run are never evicted.
enum class TaintEffect : std::uint8_t { kNoSchedule, kPreferNoSchedule };

struct TaintSettings {
  bool wanted = true;  // false: railheadd removes a taint that is there
  TaintEffect effect = TaintEffect::kNoSchedule;
  std::optional<int> when_rails_below;  // nullopt: as many as the fabric has

  bool operator==(const TaintSettings&) const = default;
};

struct NodeStatusSettings {
  bool node_condition = false;
  std::optional<TaintSettings> taint;
  bool events = false;
  KubeConfig kubernetes;

  // Whether the Kubernetes API is used at all.
  [[nodiscard]] bool Any() const { return node_condition || taint || events; }
  bool operator==(const NodeStatusSettings&) const = default;
};

}  // namespace railhead::node_status

template <>
struct railhead::Names<railhead::node_status::TaintEffect> {
  using enum node_status::TaintEffect;
  static constexpr std::array kAll = {std::pair{"NoSchedule", kNoSchedule},
                                      std::pair{"PreferNoSchedule", kPreferNoSchedule}};
};

template <>
struct railhead::Shape<railhead::node_status::TaintSettings> {
  using T = node_status::TaintSettings;
  static void Switch(T& taint, bool on) { taint.wanted = on; }
  static void List(auto& f) {
    f("effect", &T::effect);
    f("whenRailsBelow", &T::when_rails_below, {.min = 1, .max = 256});  // a rail is one of 256 PFs
  }
};

template <>
struct railhead::Shape<railhead::node_status::NodeStatusSettings> {
  using T = node_status::NodeStatusSettings;
  static void List(auto& f) {
    f("nodeCondition", &T::node_condition);
    f("taint", &T::taint);
    f("events", &T::events);
    f("kubernetes", &T::kubernetes);
    f.Gone("maxUnavailable", "remove it: the taint follows this node's own faults only");
  }
};

namespace railhead::node_status {

// `text`: the object as JSON, "" without one; `what` names its file. `rails`: how many the fabric has. `all`:
// every mistake, not only the first.
Result<NodeStatusSettings> ParseNodeStatusSettings(const std::string& text, const std::string& what,
                                                   std::size_t rails, std::vector<Error>* all = nullptr);

struct RailState {
  std::string rail;
  std::string pf;  // its network device, or address; "": the node has none for it
  bool healthy = false;
  std::vector<health::HealthReason> reasons;
  std::string unreachable;  // why, as probes have it; "": they reach others, or there are none

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

struct NodeStatus {
  std::vector<RailState> rails;  // in the fabric's order
  std::vector<health::DeviceHealth> devices;
  std::map<std::string, PodDevice> in_pods;  // by device
  std::string fabric_refused;                // why a changed fabric is not in force; "": it is
};

// `pfs`: rail to device (PfsOfRails). nullopt until the health of each of these PFs is known, after a start.
std::optional<std::vector<RailState>> RailStates(const std::vector<std::string>& rails,
                                                 const std::map<std::string, std::string>& pfs,
                                                 const std::vector<health::DeviceHealth>& devices);

int HealthyRails(const std::vector<RailState>& rails);

// The node's condition RailsReady.
struct RailsCondition {
  bool ready = true;
  std::string reason;   // for programs: AllRailsHealthy, RailsDrained, RailsUnreachable, RailsUnhealthy
  std::string message;  // for people

  bool operator==(const RailsCondition&) const = default;
};

RailsCondition ConditionOf(const std::vector<RailState>& rails);

bool WantsTaint(const TaintSettings& settings, const std::vector<RailState>& rails);

// The taint that keeps pods away from a node with too few healthy rails.
//
// Threads: pure functions.

inline constexpr const char* kRailsTaint = "railhead.io/rails-not-ready";

// The new spec.taints of a node (an array, or null); nullopt: no change. `effect` "": our taint is to go.
// Taints of others stay.
std::optional<nlohmann::json> ChangedTaints(const nlohmann::json& taints, const std::string& effect);

// Whether our taint is among them.
bool HasRailsTaint(const nlohmann::json& taints);

}  // namespace railhead::node_status
