#include "deviceplugin/services/node_status/events.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/state_file.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr const char* kComponent = "railheadd";
// With the suffix a DNS subdomain of at most 253 characters.
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
    // As kubelet does: for it a node's uid is its name, and kubectl looks for that.
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

// The API server refuses longer ones than 1024.
constexpr std::size_t kMostText = 1000;

bool IsItsOwn(const DeviceHealth& device) {
  if (!device.is_vf) return true;
  return std::any_of(device.reasons.begin(), device.reasons.end(),
                     [&](const HealthReason& reason) { return reason.device == device.id; });
}

std::string TextsOf(const DeviceHealth& device) {
  std::vector<std::string> texts;
  texts.reserve(device.reasons.size());
  for (const HealthReason& reason : device.reasons) texts.push_back(reason.text);
  return Join(texts, ", ");
}

HealthEvent EventOf(const DeviceHealth& device, const std::string& called) {
  HealthEvent event;
  event.warning = !device.healthy;
  event.reason = device.healthy ? "RailDeviceHealthy" : "RailDeviceUnhealthy";
  event.message = called + (device.healthy ? " is well again" : " is unhealthy: " + TextsOf(device));
  if (event.message.size() > kMostText) event.message = event.message.substr(0, kMostText) + "...";
  return event;
}

HealthEvent EventOfPod(const DeviceHealth& device, const PodDevice& pod) {
  const std::string where = pod.rail.empty() ? pod.interface : pod.interface + ", " + pod.rail;
  HealthEvent event = EventOf(device, "device " + device.id + (where.empty() ? "" : " (" + where + ")"));
  event.pod_namespace = pod.pod_namespace;
  event.pod = pod.pod;
  event.uid = pod.uid;
  return event;
}

std::string NameOnNode(const DeviceHealth& device) {
  if (device.is_vf) return "VF " + device.id;
  return device.pf_name.empty() ? "PF " + device.id : "PF " + device.pf_name + " (" + device.id + ")";
}

}  // namespace

std::vector<HealthEvent> EventsBetween(const std::vector<DeviceHealth>& before, const Situation& now) {
  std::map<std::string, const DeviceHealth*> old;
  for (const DeviceHealth& device : before) old[device.id] = &device;
  std::vector<HealthEvent> events;
  for (const DeviceHealth& device : now.devices) {
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

bool EventGate::Take(const HealthEvent& event, Clock::time_point now) {
  std::erase_if(told_, [&](const auto& one) { return now - one.second >= kSame; });
  if (told_.contains(event)) return false;
  Refill(now);
  if (tokens_ == 0) return false;
  --tokens_;
  told_.emplace(event, now);
  return true;
}

void EventGate::Refill(Clock::time_point now) {
  if (tokens_ == kBurst) refilled_ = now;
  const auto more = (now - refilled_) / kRefill;
  if (more <= 0) return;
  tokens_ = static_cast<int>(std::min<std::int64_t>(kBurst, tokens_ + more));
  refilled_ += more * kRefill;
}

}  // namespace railhead
