#include "deviceplugin/services/node_status/node_status_writer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "deviceplugin/services/node_status/rail_states.h"
#include "netns/base/text.h"

namespace railhead::node_status {
namespace {

using std::chrono::milliseconds;

constexpr int kTaintTries = 3;
// Further events would be too old when they are sent.
constexpr std::size_t kMostWaiting = 50;

// Another try may succeed.
bool IsTransient(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

void Note(Result<void> done, NodeStatusOutcome* outcome) {
  if (!done && !outcome->problem) outcome->problem = std::move(done.error());
}

}  // namespace

NodeStatusWriter::NodeStatusWriter(NodeStatusSettings settings, std::unique_ptr<NodeApi> api,
                                   std::uint64_t seed)
    : settings_(std::move(settings)), api_(std::move(api)), random_(seed) {}

NodeStatusOutcome NodeStatusWriter::Step(const NodeStatus& status, Steady now, System wall) {
  NodeStatusOutcome outcome;
  node_.reset();
  QueueEvents(status, now);
  const bool beat = !beat_ || now >= *beat_;
  if (settings_.taint) {
    const bool wanted = WantsTaint(*settings_.taint, status.rails);
    if (tainted_ != wanted || (beat && settings_.taint->wanted))
      Note(SettleTaint(wanted, &outcome), &outcome);
  }
  if (settings_.node_condition) {
    const RailsCondition condition = ConditionOf(status.rails);
    if (condition_ != condition || beat) Note(SettleCondition(condition, wall, &outcome), &outcome);
  }
  Note(SendEvents(wall), &outcome);
  if (outcome.problem) {
    failed_updates_.Add();
    outcome.wait = BackOff();
    return outcome;
  }
  failures_ = 0;
  if (beat) beat_ = now + Jittered(kHeartbeat);
  outcome.wait = std::chrono::ceil<milliseconds>(*beat_ - now);
  return outcome;
}

void NodeStatusWriter::QueueEvents(const NodeStatus& status, Steady now) {
  if (!settings_.events) return;
  const auto before = std::exchange(devices_, status.devices);
  const auto rails = std::exchange(rails_, status.rails);
  const std::string refused = std::exchange(fabric_refused_, status.fabric_refused);
  // After a start it is unknown which events the cluster has.
  if (!before) return;
  auto events = EventsBetween(*before, status);
  std::ranges::move(EventsOfProbes(rails, status.rails), std::back_inserter(events));
  if (!status.fabric_refused.empty() && status.fabric_refused != refused)
    events.push_back(EventOfRefusedFabric(status.fabric_refused));
  for (HealthEvent& event : events) {
    if (!gate_.Take(event, now)) {
      events_limited_.Add();
      continue;
    }
    events_.push_back(std::move(event));
  }
  for (; events_.size() > kMostWaiting; events_.pop_front()) events_failed_.Add();
}

Result<NodeObject*> NodeStatusWriter::Node() {
  if (!node_) node_ = RH_TRY(api_->Read());
  return &*node_;
}

Result<void> NodeStatusWriter::SettleTaint(bool wanted, NodeStatusOutcome* outcome) {
  Result<void> written;
  for (int i = 0; i < kTaintTries; ++i) {
    const NodeObject* node = RH_TRY(Node());
    const auto taints =
        ChangedTaints(node->taints, wanted ? std::string(WordOf(settings_.taint->effect)) : "");
    if (!taints) {
      tainted_ = wanted;
      return {};
    }
    const bool had = HasRailsTaint(node->taints);
    written = api_->WriteTaints(*node, *taints);
    node_.reset();
    if (written) {
      tainted_ = wanted;
      if (had != wanted) outcome->tainted = wanted;
      return {};
    }
    if (written.error().code != ErrorCode::kConflict) break;
  }
  return written;
}

Result<void> NodeStatusWriter::SettleCondition(const RailsCondition& condition, System wall,
                                               NodeStatusOutcome* outcome) {
  const NodeObject* node = RH_TRY(Node());
  const bool changed = node->condition != (condition.ready ? "True" : "False");
  RH_TRY(api_->WriteCondition(condition, wall, changed));
  if (std::exchange(condition_, condition) != condition) outcome->condition = condition;
  return {};
}

Result<void> NodeStatusWriter::SendEvents(System wall) {
  while (!events_.empty()) {
    auto created = api_->Create(events_.front(), wall);
    if (!created && IsTransient(created.error())) return created;
    (created ? events_sent_ : events_failed_).Add();
    events_.pop_front();
    if (!created) return created;
  }
  return {};
}

milliseconds NodeStatusWriter::BackOff() {
  const int doubled = std::min(failures_++, 10);
  const milliseconds wait =
      std::min<milliseconds>(kMostBackOff, milliseconds(kFirstBackOff) * (1 << doubled));
  return Jittered(wait);
}

milliseconds NodeStatusWriter::Jittered(milliseconds time) {
  std::uniform_int_distribution<std::int64_t> part(-time.count() / 10, time.count() / 10);
  return time + milliseconds(part(random_));
}

NodeStatusCounts NodeStatusWriter::Counts() const {
  return {api_->sent(), failed_updates_.value(), events_sent_.value(), events_limited_.value(),
          events_failed_.value()};
}

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

namespace {

constexpr const char* kComponent = "railheadd";
// With the suffix the name is a DNS subdomain of at most 253 characters.
constexpr std::size_t kMostName = 236;

std::string ObjectName(const std::string& of, std::uint64_t unique) {
  std::array<char, 20> suffix{};
  (void)std::snprintf(suffix.data(), suffix.size(), "%016llx", static_cast<unsigned long long>(unique));
  return of.substr(0, kMostName) + "." + suffix.data();
}

}  // namespace

std::string NamespaceOf(const HealthEvent& event) {
  return event.pod.empty() ? kNodeEventsNamespace : event.pod_namespace;
}

std::string EventObject(const HealthEvent& event, const std::string& node,
                        std::chrono::system_clock::time_point time, std::uint64_t unique) {
  nlohmann::json involved = {{"apiVersion", "v1"}};
  if (event.pod.empty()) {
    // As in kubelet's events: the node's uid is its name, and kubectl searches for that.
    involved.update({{"kind", "Node"}, {"name", node}, {"uid", node}});
  } else {
    involved.update({{"kind", "Pod"}, {"namespace", event.pod_namespace}, {"name", event.pod}});
    if (!event.uid.empty()) involved["uid"] = event.uid;
  }
  const std::string at = FormatTime(time);
  const nlohmann::json object = {{"apiVersion", "v1"},
                                 {"kind", "Event"},
                                 {"metadata",
                                  {{"name", ObjectName(event.pod.empty() ? node : event.pod, unique)},
                                   {"namespace", NamespaceOf(event)}}},
                                 {"involvedObject", involved},
                                 {"reason", event.reason},
                                 {"message", event.message},
                                 {"type", event.warning ? "Warning" : "Normal"},
                                 {"count", 1},
                                 {"firstTimestamp", at},
                                 {"lastTimestamp", at},
                                 {"source", {{"component", kComponent}, {"host", node}}},
                                 {"reportingComponent", kComponent},
                                 {"reportingInstance", node}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

// The API server refuses more than 1024 characters.
constexpr std::size_t kMostText = 1000;

bool IsItsOwn(const health::DeviceHealth& device) {
  if (!device.is_vf) return true;
  return Contains(device.reasons, device.id, &health::HealthReason::device);
}

std::string TextsOf(const health::DeviceHealth& device) {
  std::vector<std::string> texts;
  texts.reserve(device.reasons.size());
  for (const health::HealthReason& reason : device.reasons) texts.push_back(reason.text);
  return Join(texts, ", ");
}

HealthEvent EventOf(const health::DeviceHealth& device, const std::string& name) {
  HealthEvent event;
  event.warning = !device.healthy;
  event.reason = device.healthy ? "RailDeviceHealthy" : "RailDeviceUnhealthy";
  event.message = name + (device.healthy ? " is healthy again" : " is unhealthy: " + TextsOf(device));
  if (event.message.size() > kMostText) event.message = event.message.substr(0, kMostText) + "...";
  return event;
}

HealthEvent EventOfPod(const health::DeviceHealth& device, const PodDevice& pod) {
  const std::string where = pod.rail.empty() ? pod.interface : pod.interface + ", " + pod.rail;
  HealthEvent event = EventOf(device, "device " + device.id + (where.empty() ? "" : " (" + where + ")"));
  event.pod_namespace = pod.pod_namespace;
  event.pod = pod.pod;
  event.uid = pod.uid;
  return event;
}

std::string NameOnNode(const health::DeviceHealth& device) {
  if (device.is_vf) return "VF " + device.id;
  return device.pf_name.empty() ? "PF " + device.id : "PF " + device.pf_name + " (" + device.id + ")";
}

}  // namespace

std::vector<HealthEvent> EventsBetween(const std::vector<health::DeviceHealth>& before,
                                       const NodeStatus& now) {
  std::map<std::string, const health::DeviceHealth*> old;
  for (const health::DeviceHealth& device : before) old[device.id] = &device;
  std::vector<HealthEvent> events;
  for (const health::DeviceHealth& device : now.devices) {
    const auto was = old.find(device.id);
    if (was == old.end() || was->second->healthy == device.healthy) continue;
    const auto pod = now.in_pods.find(device.id);
    if (pod != now.in_pods.end() && !pod->second.pod.empty())
      events.push_back(EventOfPod(device, pod->second));
    if (IsItsOwn(device.healthy ? *was->second : device))
      events.push_back(EventOf(device, NameOnNode(device)));
  }
  return events;
}

std::vector<HealthEvent> EventsOfProbes(const std::vector<RailState>& before,
                                        const std::vector<RailState>& now) {
  std::vector<HealthEvent> events;
  for (const RailState& rail : now) {
    const auto old = std::ranges::find(before, rail.rail, &RailState::rail);
    const bool bad = !rail.unreachable.empty();
    const bool was_bad = old != before.end() && !old->unreachable.empty();
    if (bad == was_bad) continue;
    HealthEvent event;
    event.warning = bad;
    event.reason = bad ? "RailUnreachable" : "RailReachable";
    event.message = rail.rail + ": " + (bad ? rail.unreachable : "probes reach others again");
    if (event.message.size() > kMostText) event.message = event.message.substr(0, kMostText) + "...";
    events.push_back(std::move(event));
  }
  return events;
}

HealthEvent EventOfRefusedFabric(const std::string& why) {
  HealthEvent event;
  event.warning = true;
  event.reason = "FabricRefused";
  event.message = "a changed fabric is not in force: " + why;
  if (event.message.size() > kMostText) event.message = event.message.substr(0, kMostText) + "...";
  return event;
}

bool EventGate::Take(const HealthEvent& event, Clock::time_point now) {
  std::erase_if(recent_, [&](const auto& one) { return now - one.second >= kSame; });
  if (recent_.contains(event)) return false;
  Refill(now);
  if (tokens_ == 0) return false;
  --tokens_;
  recent_.emplace(event, now);
  return true;
}

void EventGate::Refill(Clock::time_point now) {
  if (tokens_ == kBurst) refilled_ = now;
  const auto more = (now - refilled_) / kRefill;
  if (more <= 0) return;
  tokens_ = static_cast<int>(std::min<std::int64_t>(kBurst, tokens_ + more));
  refilled_ += more * kRefill;
}

}  // namespace railhead::node_status
