// Whether railheadd is alive and whether it is ready, for /healthz, /readyz and the service
// manager.
//
//   alive   every part has been heard of within the time that it gave itself (heartbeat.h)
//   ready   every resource is registered with kubelet, or left to a newer railheadd. That
//           the configuration was good once is given: without, there is no daemon.
//
// Threads: thread-safe, as what they read is.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/services/kubelet/resource_stats.h"
#include "deviceplugin/support/http/http_message.h"

namespace railhead {

using ResourceActivities = std::vector<std::shared_ptr<const ResourceActivity>>;

struct Readiness {
  struct Missing {
    std::string resource;  // "" for what concerns all
    std::string because;
  };
  std::vector<Missing> missing;
  std::vector<std::string> warnings;  // what is not as it should be and does not stop it
  std::size_t registered = 0;
  std::size_t standing_by = 0;
  [[nodiscard]] bool ready() const { return missing.empty(); }
};

// The names of the parts that hang.
std::vector<std::string_view> StuckParts(const Heartbeats& beats);
Readiness ReadinessOf(const Activity& activity, const ResourceActivities& resources);
// There are resources, and a newer process serves all of them, whatever kubelet still has of ours.
bool StandsBy(const ResourceActivities& resources);
// For people: "2 of 2 resources are registered with kubelet".
std::string StatusLine(const Readiness& readiness);

// The body of a 404.
inline constexpr const char* kNoSuchPage = "there are /metrics, /healthz and /readyz\n";

// 200 or 503, with a JSON object.
HttpResponse HealthzAnswer(const Heartbeats& beats);
HttpResponse ReadyzAnswer(const Readiness& readiness);

}  // namespace railhead
