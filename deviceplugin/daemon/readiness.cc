#include "deviceplugin/daemon/readiness.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace railhead::daemon {
namespace {

constexpr int kGood = 200;
constexpr int kBad = 503;

http::HttpResponse JsonAnswer(int status, const nlohmann::ordered_json& json) {
  http::HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  // Invalid UTF-8 is replaced.
  response.body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return response;
}

std::string WhyNotRegistered(const kubelet::ResourceActivity& resource) {
  std::string problem = resource.problem();
  if (!problem.empty()) return problem;
  return resource.serving ? "kubelet's socket does not exist, or kubelet has just dropped the resource"
                          : "it is not served yet";
}

}  // namespace

Readiness ReadinessOf(const std::string& not_serving, bool uevents_connected,
                      const ResourceActivities& resources) {
  Readiness readiness;
  if (!uevents_connected) {
    readiness.warnings.emplace_back("the kernel sends no device events: discovery runs every ten seconds");
  }
  if (!not_serving.empty()) {
    readiness.missing.push_back({"", not_serving});
    return readiness;
  }
  for (const auto& resource : resources) {
    if (resource->registered) {
      ++readiness.registered;
    } else if (resource->standby) {
      ++readiness.standby;
    } else {
      readiness.missing.push_back({resource->resource, WhyNotRegistered(*resource)});
    }
  }
  return readiness;
}

std::string StatusLine(const Readiness& readiness) {
  const std::size_t all = readiness.registered + readiness.standby + readiness.missing.size();
  if (!readiness.ready()) {
    const Readiness::Missing& first = readiness.missing.front();
    return first.resource.empty() ? "Not ready: " + first.because
                                  : "Not registered with kubelet: " + first.resource + ": " + first.because;
  }
  if (readiness.standby > 0 && readiness.registered == 0)
    return "Standby: a newer railheadd serves the resources";
  return std::to_string(readiness.registered) + " of " + std::to_string(all) +
         " resources are registered with kubelet";
}

http::HttpResponse HealthzAnswer(const std::vector<Supervisor::Stuck>& stuck) {
  if (stuck.empty()) return JsonAnswer(kGood, {{"status", "alive"}});
  auto threads = nlohmann::ordered_json::array();
  auto busy = nlohmann::ordered_json::object();
  for (const Supervisor::Stuck& one : stuck) {
    threads.push_back(one.service);
    busy[std::string(one.service)] = one.at;
  }
  return JsonAnswer(kBad,
                    {{"status", "stuck"}, {"threads", std::move(threads)}, {"busyAt", std::move(busy)}});
}

http::HttpResponse ReadyzAnswer(const Readiness& readiness) {
  nlohmann::ordered_json json{{"status", readiness.ready() ? "ready" : "not ready"},
                              {"registered", readiness.registered},
                              {"standby", readiness.standby}};
  if (!readiness.warnings.empty()) json["warnings"] = readiness.warnings;
  if (readiness.ready()) return JsonAnswer(kGood, json);
  auto missing = nlohmann::ordered_json::array();
  for (const Readiness::Missing& one : readiness.missing) {
    nlohmann::ordered_json entry;
    if (!one.resource.empty()) entry["resource"] = one.resource;
    entry["because"] = one.because;
    missing.push_back(std::move(entry));
  }
  json["missing"] = std::move(missing);
  return JsonAnswer(kBad, json);
}

}  // namespace railhead::daemon
