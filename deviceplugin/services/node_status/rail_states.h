// NodeStatus: what the cluster sees of this node's rails.
//
// A rail is healthy when its PF exists and no health rule is active on it. A single unhealthy VF does not
// affect the rail: it is only reported to kubelet. A rail on which probes reach nothing is reported, and no
// more: packets of others must not take it out of use. Threads: pure functions over values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/health/device_health.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "netns/json/json_reader.h"

namespace railhead::node_status {

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

}  // namespace railhead::node_status
