#include "deviceplugin/services/node_status/node_api.h"

#include <algorithm>
#include <utility>

#include "deviceplugin/services/node_status/event_object.h"
#include "netns/base/text.h"

namespace railhead::node_status {
namespace {

using NodeJson = nlohmann::json;

constexpr const char* kMergePatch = "application/merge-patch+json";
// Changes only the entry of the same type in a list such as the conditions.
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";

std::string Text(const NodeJson& json) {
  return json.dump(-1, ' ', false, NodeJson::error_handler_t::replace);
}

}  // namespace

NodeApi::NodeApi(const KubeAccess& access, std::chrono::milliseconds timeout, std::string node)
    : api_(access, timeout, {"manifests/components/node-conditions", "railhead-node-conditions"}),
      node_(std::move(node)),
      path_("/api/v1/nodes/" + EscapeForQuery(node_)) {}

Result<NodeObject> NodeApi::Read() {
  const KubeAnswer answer = RH_TRY_WRAP(api_.Call("GET", path_), "reading node " + node_);
  if (answer.status != KubeAnswer::Status::kDone) {
    return Fail(ErrorCode::kNotFound, "the cluster has no node " + node_,
                "/etc/railhead/node-name has to be the node's name in Kubernetes");
  }
  NodeObject node;
  JsonReader root = answer.document.Root();
  if (auto metadata = root.Object("metadata"))
    node.resource_version = metadata->RequiredString("resourceVersion");
  if (auto spec = root.Object("spec")) {
    if (const NodeJson* taints = spec->Raw("taints")) node.taints = *taints;
  }
  if (auto status = root.Object("status")) {
    for (JsonReader& condition : status->Objects("conditions")) {
      if (condition.String("type") == kRailsReady) node.condition = condition.String("status");
    }
  }
  RH_TRY_WRAP(root.status(), "reading node " + node_);
  return node;
}

Result<KubeAnswer> NodeApi::Patch(const std::string& target, const NodeJson& patch, const std::string& type) {
  KubeAnswer answer = RH_TRY(api_.Call("PATCH", target, Text(patch), type));
  if (answer.status != KubeAnswer::Status::kDone)
    return Fail(ErrorCode::kNotFound, "node " + node_ + " no longer exists in the cluster");
  return answer;
}

Result<void> NodeApi::WriteTaints(const NodeObject& seen, const NodeJson& taints) {
  // The patch replaces the whole list. Without the version it would undo a taint that another program has
  // just added.
  const NodeJson patch = {{"metadata", {{"resourceVersion", seen.resource_version}}},
                          {"spec", {{"taints", taints.empty() ? NodeJson() : taints}}}};
  RH_TRY_WRAP(Patch(path_, patch, kMergePatch), "changing the taints of node " + node_);
  return {};
}

Result<void> NodeApi::WriteCondition(const RailsCondition& condition,
                                     std::chrono::system_clock::time_point now, bool changed) {
  NodeJson entry = {{"type", kRailsReady},
                    {"status", condition.ready ? "True" : "False"},
                    {"reason", condition.reason},
                    {"message", condition.message},
                    {"lastHeartbeatTime", FormatTime(now)}};
  if (changed) entry["lastTransitionTime"] = FormatTime(now);
  const NodeJson patch = {{"status", {{"conditions", NodeJson::array({std::move(entry)})}}}};
  RH_TRY_WRAP(Patch(path_ + "/status", patch, kStrategicPatch),
              std::string("writing the condition ") + kRailsReady + " of node " + node_);
  return {};
}

Result<void> NodeApi::Create(const HealthEvent& event, std::chrono::system_clock::time_point now) {
  const auto ns = now.time_since_epoch() / std::chrono::nanoseconds(1);
  // Two events may have the same nanosecond, and the clock may have been set back.
  unique_ = std::max(unique_ + 1, static_cast<std::uint64_t>(ns));
  const std::string path = "/api/v1/namespaces/" + EscapeForQuery(NamespaceOf(event)) + "/events";
  RH_TRY_WRAP(api_.Call("POST", path, EventObject(event, node_, now, unique_)),
              "creating an event for " +
                  (event.pod.empty() ? "node " + node_ : event.pod_namespace + "/" + event.pod));
  return {};
}

}  // namespace railhead::node_status
