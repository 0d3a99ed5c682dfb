// A HealthEvent as the Kubernetes API wants it: core/v1 Event.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "deviceplugin/services/node_status/rail_states.h"

namespace railhead {

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
std::vector<HealthEvent> EventsBetween(const std::vector<DeviceHealth>& before, const Situation& now);

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

}  // namespace railhead
