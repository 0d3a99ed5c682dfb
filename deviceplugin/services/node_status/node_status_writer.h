// Writes a NodeStatus to the node's object in Kubernetes: condition, taint and events.
//
// A step writes the differences to the last write, and everything every five minutes. So changes by others
// are undone, and the condition's heartbeat goes on. The next step repeats what failed; the outcome says when
// it is due. Ownership: owns the API. Threads: Step() on one; Counts() from any. Errors: in the outcome.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "deviceplugin/services/node_status/health_events.h"
#include "deviceplugin/services/node_status/node_api.h"
#include "deviceplugin/services/node_status/node_status_settings.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/support/metrics/counter.h"
#include "netns/base/result.h"

namespace railhead::node_status {

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
