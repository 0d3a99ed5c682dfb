// This node's object in the Kubernetes API: the parts that railheadd writes.
//
// Needs manifests/components/node-conditions: nodes get and patch, nodes/status patch, events create.
// Threads: one at a time; sent() from any. Errors: those of KubeApi; kNotFound: the node does not exist;
// kConflict: another program has changed the node since it was read.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "deviceplugin/services/node_status/health_events.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "netns/base/result.h"

namespace railhead::node_status {

inline constexpr const char* kRailsReady = "RailsReady";

struct NodeObject {
  std::string resource_version;
  nlohmann::json taints;  // spec.taints, or null
  std::optional<std::string>
      condition;  // RailsReady's status: "True", "False", "Unknown"; nullopt: it has none
};

class NodeApi {
 public:
  NodeApi(const KubeAccess& access, std::chrono::milliseconds timeout, std::string node);

  Result<NodeObject> Read();
  // kConflict when the node has changed since `seen`.
  Result<void> WriteTaints(const NodeObject& seen, const nlohmann::json& taints);
  // `changed`: since when it has this status. nullopt: the status has not changed.
  Result<void> WriteCondition(const RailsCondition& condition, std::chrono::system_clock::time_point now,
                              bool changed);
  // A missing namespace is not an error: its pods are gone, too.
  Result<void> Create(const HealthEvent& event, std::chrono::system_clock::time_point now);
  [[nodiscard]] std::uint64_t sent() const { return api_.sent(); }

 private:
  Result<KubeAnswer> Patch(const std::string& target, const nlohmann::json& patch, const std::string& type);

  KubeApi api_;
  const std::string node_;
  const std::string path_;
  std::uint64_t unique_ = 0;
};

}  // namespace railhead::node_status
