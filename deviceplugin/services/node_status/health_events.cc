#include "deviceplugin/services/node_status/health_events.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "netns/base/text.h"

namespace railhead::node_status {
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
