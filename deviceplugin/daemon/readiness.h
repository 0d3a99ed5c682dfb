// Readiness: whether railheadd is alive and whether it is ready, for /healthz, /readyz and the service
// manager.
//
//   alive   Every service has made progress within its own time limit.
//   ready   Every resource is registered with kubelet, or a newer railheadd serves it. The configuration was
//           valid once: otherwise railheadd would have ended.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/services/kubelet/resource_activity.h"
#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/service/supervisor.h"

namespace railhead::daemon {

using ResourceActivities = std::vector<std::shared_ptr<const kubelet::ResourceActivity>>;

struct Readiness {
  struct Missing {
    std::string resource;  // "": all
    std::string because;
  };
  std::vector<Missing> missing;
  std::vector<std::string> warnings;  // problems that do not make it unready
  std::size_t registered = 0;
  std::size_t standby = 0;
  [[nodiscard]] bool ready() const { return missing.empty(); }
};

// `not_serving`: why no resource is served yet; "": they are.
Readiness ReadinessOf(const std::string& not_serving, bool uevents_connected,
                      const ResourceActivities& resources);
// For people: "2 of 2 resources are registered with kubelet".
std::string StatusLine(const Readiness& readiness);

// 200 or 503, with a JSON object.
http::HttpResponse HealthzAnswer(const std::vector<Supervisor::Stuck>& stuck);
http::HttpResponse ReadyzAnswer(const Readiness& readiness);

}  // namespace railhead::daemon
