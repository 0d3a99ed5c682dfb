// Writes a NodeStatus to the node's object in Kubernetes: condition, taint and events.
//
// A step writes the differences to the last write, and everything every five minutes. So changes by others
// are undone, and the condition's heartbeat goes on. The next step repeats what failed; the outcome says when
// it is due. Ownership: owns the API. Threads: Step() on one; Counts() from any. Errors: in the outcome.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "deviceplugin/support/metrics/counter.h"
#include "netns/base/result.h"

namespace railhead::node_status {

// A HealthEvent as the Kubernetes API wants it: core/v1 Event.
//
// Threads: pure functions.

// Kubernetes events about devices that became unhealthy or healthy again, and a limit for them.
//
// Threads: pure functions; an EventGate is one thread's.

struct HealthEvent {
  // The pod that has the device. If both are empty, the event is about the node.
  std::string pod_namespace;
  std::string pod;
  std::string uid;
  bool warning = false;
  std::string reason;  // RailDeviceUnhealthy, RailDeviceHealthy, RailUnreachable, RailReachable
  std::string message;

  bool operator==(const HealthEvent&) const = default;
  auto operator<=>(const HealthEvent&) const = default;
};

// The events for the changes. Each pod whose device changed gets one. The node gets one for each PF, and for
// each VF with a fault of its own. New devices cause no event.
std::vector<HealthEvent> EventsBetween(const std::vector<health::DeviceHealth>& before,
                                       const NodeStatus& now);

// The node's events for rails that became unreachable, or reachable again.
std::vector<HealthEvent> EventsOfProbes(const std::vector<RailState>& before,
                                        const std::vector<RailState>& now);

// The node's event for a changed fabric that is refused.
HealthEvent EventOfRefusedFabric(const std::string& why);

// A token bucket, and the same event at most once in ten minutes: flapping links must not fill etcd.
class EventGate {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kBurst = 25;
  static constexpr std::chrono::seconds kRefill{30};  // for one
  static constexpr std::chrono::minutes kSame{10};

  // Whether the event may be sent; it then counts as sent.
  bool Take(const HealthEvent& event, Clock::time_point now);

 private:
  void Refill(Clock::time_point now);

  int tokens_ = kBurst;
  Clock::time_point refilled_{};
  std::map<HealthEvent, Clock::time_point> recent_;
};

// The namespace of events about a node, which has none itself.
inline constexpr const char* kNodeEventsNamespace = "default";

std::string NamespaceOf(const HealthEvent& event);

// `unique` goes into the object's name and must be another one for every event of an object.
std::string EventObject(const HealthEvent& event, const std::string& node,
                        std::chrono::system_clock::time_point time, std::uint64_t unique);

// This node's object in the Kubernetes API: the parts that railheadd writes.
//
// Needs manifests/components/node-conditions: nodes get and patch, nodes/status patch, events create.
// Threads: one at a time; sent() from any. Errors: those of KubeApi; kNotFound: the node does not exist;
// kConflict: another program has changed the node since it was read.

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

struct NodeStatusOutcome {
  std::optional<RailsCondition> condition;  // written, and different from the one before
  std::optional<bool> tainted;              // the taint was set, or taken away
  std::optional<Error> problem;             // the first that went wrong
  std::chrono::milliseconds wait{0};        // until the next step, if nothing changes
};

struct NodeStatusCounts {
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;
  std::uint64_t events_sent = 0;
  std::uint64_t events_limited = 0;  // by the EventGate
  std::uint64_t events_failed = 0;   // refused, or too many waited
};

class NodeStatusWriter {
 public:
  using Steady = std::chrono::steady_clock::time_point;
  using System = std::chrono::system_clock::time_point;

  static constexpr std::chrono::minutes kHeartbeat{5};
  static constexpr std::chrono::seconds kFirstBackOff{1};
  static constexpr std::chrono::seconds kMostBackOff{60};

  NodeStatusWriter(NodeStatusSettings settings, std::unique_ptr<NodeApi> api, std::uint64_t seed);

  NodeStatusOutcome Step(const NodeStatus& status, Steady now, System wall);
  [[nodiscard]] NodeStatusCounts Counts() const;

 private:
  void QueueEvents(const NodeStatus& status, Steady now);
  // Reads the node at most once a step.
  Result<NodeObject*> Node();
  Result<void> SettleTaint(bool wanted, NodeStatusOutcome* outcome);
  Result<void> SettleCondition(const RailsCondition& condition, System wall, NodeStatusOutcome* outcome);
  Result<void> SendEvents(System wall);
  std::chrono::milliseconds BackOff();
  // Varies the time by up to a tenth: the nodes of a cluster must not act at the same moment.
  std::chrono::milliseconds Jittered(std::chrono::milliseconds time);

  const NodeStatusSettings settings_;
  const std::unique_ptr<NodeApi> api_;
  std::mt19937_64 random_;

  std::optional<NodeObject> node_;  // as read in this step
  std::optional<RailsCondition> condition_;
  std::optional<bool> tainted_;
  std::optional<Steady> beat_;  // the next one; nullopt: now
  std::optional<std::vector<health::DeviceHealth>> devices_;
  std::vector<RailState> rails_;
  std::string fabric_refused_;
  EventGate gate_;
  std::deque<HealthEvent> events_;
  int failures_ = 0;  // in a row

  Counter failed_updates_;
  Counter events_sent_;
  Counter events_limited_;
  Counter events_failed_;
};

}  // namespace railhead::node_status
