// This node's object in the Kubernetes API, as far as isolation writes it.
//
// Needs manifests/components/node-conditions: nodes get and patch, nodes/status patch, events create.
// Threads: one at a time; sent() from any. Errors: those of KubeApi; kNotFound: there is no such node;
// kConflict: somebody else has changed it since it was read.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "deviceplugin/services/node_status/health_events.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "netns/base/result.h"

namespace railhead {

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
  // kConflict when the node is no longer `seen`.
  Result<void> WriteTaints(const NodeObject& seen, const nlohmann::json& taints);
  // `changed`: since when it has this status; nullopt: it had it before.
  Result<void> WriteCondition(const RailsCondition& condition, std::chrono::system_clock::time_point now,
                              bool changed);
  // A namespace that is gone is well: so are its pods.
  Result<void> Create(const HealthEvent& event, std::chrono::system_clock::time_point now);
  [[nodiscard]] std::uint64_t sent() const { return api_.sent(); }

 private:
  Result<KubeAnswer> Patch(const std::string& target, const nlohmann::json& patch, const std::string& type);

  KubeApi api_;
  const std::string node_;
  const std::string path_;
  std::uint64_t unique_ = 0;
};

}  // namespace railhead
