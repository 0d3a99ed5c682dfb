// Makes the node's object say what a Situation says, step by step.
//
// A step writes what is different from what was written last, and every five minutes all of it, so that what
// somebody else changed comes back and the condition's heartbeat goes on. What fails is tried again at the
// next step, which the outcome says when to take. Ownership: owns the API. Threads: Step() on one; Counts()
// from any. Errors: in the outcome.
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
#include "deviceplugin/support/kubernetes/kube_api.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/result.h"

namespace railhead::node_status {

// A HealthEvent as the Kubernetes API wants it: core/v1 Event.
//
// Threads: pure functions.

// Events of Kubernetes about devices that fell ill or are well again, and how many of them are told.
//
// Threads: pure functions; an EventGate is one thread's.

struct HealthEvent {
  // Of the pod that has the device; without one, of the node.
  std::string pod_namespace;
  std::string pod;
  std::string uid;
  bool warning = false;
  std::string reason;  // RailDeviceUnhealthy, RailDeviceHealthy
  std::string message;

  bool operator==(const HealthEvent&) const = default;
  auto operator<=>(const HealthEvent&) const = default;
};

// What is different in `now`: for each pod whose device changed, and for the node each PF, and each VF that
// has a trouble of its own. Nothing of devices that were not there before.
std::vector<HealthEvent> EventsBetween(const std::vector<health::DeviceHealth>& before, const Situation& now);

// A token bucket, and the same event at most once in ten minutes: links that flap are not to fill etcd.
class EventGate {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kBurst = 25;
  static constexpr std::chrono::seconds kRefill{30};  // for one
  static constexpr std::chrono::minutes kSame{10};

  // Whether it may be told; then it counts as told.
  bool Take(const HealthEvent& event, Clock::time_point now);

 private:
  void Refill(Clock::time_point now);

  int tokens_ = kBurst;
  Clock::time_point refilled_{};
  std::map<HealthEvent, Clock::time_point> told_;
};

// Where such events of a node are: it has no namespace itself.
inline constexpr const char* kNodeEventsNamespace = "default";

std::string NamespaceOf(const HealthEvent& event);

// `unique` goes into the object's name and must be another one for every event of an object.
std::string EventObject(const HealthEvent& event, const std::string& node,
                        std::chrono::system_clock::time_point time, std::uint64_t unique);

// This node's object in the Kubernetes API, as far as isolation writes it.
//
// Needs manifests/components/node-conditions: nodes get and patch, nodes/status patch, events create.
// Threads: one at a time; sent() from any. Errors: those of KubeApi; kNotFound: there is no such node;
// kConflict: somebody else has changed it since it was read.

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

struct IsolationOutcome {
  std::optional<RailsCondition> condition;  // written, and another one than before
  std::optional<bool> tainted;              // the taint was set, or taken away
  std::optional<Error> problem;             // the first that went wrong
  std::chrono::milliseconds wait{0};        // until the next step, if nothing changes
};

struct IsolationCounts {
  std::uint64_t calls = 0;
  std::uint64_t failed_steps = 0;
  std::uint64_t events_told = 0;
  std::uint64_t events_limited = 0;  // by the EventGate
  std::uint64_t events_failed = 0;   // refused, or too many waited
};

class Isolator {
 public:
  using Steady = std::chrono::steady_clock::time_point;
  using System = std::chrono::system_clock::time_point;

  static constexpr std::chrono::minutes kHeartbeat{5};
  static constexpr std::chrono::seconds kFirstBackOff{1};
  static constexpr std::chrono::seconds kMostBackOff{60};

  Isolator(IsolationSettings settings, std::unique_ptr<NodeApi> api, std::uint64_t seed);

  IsolationOutcome Step(const Situation& situation, Steady now, System wall);
  [[nodiscard]] IsolationCounts Counts() const;

 private:
  void Follow(const Situation& situation, Steady now);
  // Reads the node at most once a step.
  Result<NodeObject*> Node();
  Result<void> SettleTaint(bool wanted, IsolationOutcome* outcome);
  Result<void> SettleCondition(const RailsCondition& condition, System wall, IsolationOutcome* outcome);
  Result<void> TellEvents(System wall);
  std::chrono::milliseconds BackOff();
  // Give or take a tenth: the nodes of a cluster are not to do it all at once.
  std::chrono::milliseconds Jittered(std::chrono::milliseconds time);

  const IsolationSettings settings_;
  const std::unique_ptr<NodeApi> api_;
  std::mt19937_64 random_;

  std::optional<NodeObject> node_;  // as read in this step
  std::optional<RailsCondition> condition_;
  std::optional<bool> tainted_;
  std::optional<Steady> beat_;  // the next one; nullopt: now
  std::optional<std::vector<health::DeviceHealth>> devices_;
  EventGate gate_;
  std::deque<HealthEvent> events_;
  int failures_ = 0;  // in a row

  Counter failed_steps_;
  Counter told_;
  Counter limited_;
  Counter failed_;
};

}  // namespace railhead::node_status
