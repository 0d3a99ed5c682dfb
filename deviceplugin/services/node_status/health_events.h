// Kubernetes events about devices that became unhealthy or healthy again, and a limit for them.
//
// Threads: pure functions; an EventGate is one thread's.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "deviceplugin/services/node_status/rail_states.h"

namespace railhead::node_status {

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

}  // namespace railhead::node_status
