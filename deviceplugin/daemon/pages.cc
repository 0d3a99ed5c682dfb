#include "deviceplugin/daemon/pages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace railhead::daemon {

Result<void> Pages::Serve(http::HttpServer::Handler handler) {
  {
    const std::lock_guard lock(mutex_);
    handler_ = std::move(handler);
  }
  RH_TRY(StartAt(shared_address_, &shared_));
  return StartAt(own_address_, &own_);
}

Result<void> Pages::StartAt(const std::optional<http::HttpAddress>& address,
                            std::unique_ptr<http::HttpServer>* server) {
  if (!address || *server) return {};
  *server = RH_TRY(http::HttpServer::Start(
      *address, [this](const http::HttpRequest& request) { return Answer(request); },
      [log = log_](const Result<std::string>& bound) {
        if (bound) {
          log->Info("serving metrics and probes", {{"address", *bound}});
        } else {
          log->Warning("serving metrics and probes failed", bound.error());
        }
      },
      [](const http::HttpRequest& request) { return request.path == kNicsPath; }));
  return {};
}

http::HttpResponse Pages::Answer(const http::HttpRequest& request) {
  const std::shared_lock lock(mutex_);
  return handler_(request);
}

void Pages::SetEnabled(bool enabled) {
  if (shared_) shared_->SetEnabled(enabled);
}

void Pages::Stop() {
  for (http::HttpServer* server : {shared_.get(), own_.get()}) {
    if (server != nullptr) server->Stop();
  }
}

bool Pages::AwaitEnd(std::chrono::milliseconds limit) {
  return (!shared_ || shared_->AwaitEnd(limit)) && (!own_ || own_->AwaitEnd(limit));
}

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

std::vector<std::string_view> StuckThreads(const Heartbeats& beats) {
  std::vector<std::string_view> stuck;
  if (beats.node_watcher.IsLate()) stuck.emplace_back("node_watcher");
  if (beats.registrar.IsLate()) stuck.emplace_back("registrar");
  if (beats.reconciler.IsLate()) stuck.emplace_back("reconciler");
  if (beats.binder.IsLate()) stuck.emplace_back("binder");
  if (beats.provisioner.IsLate()) stuck.emplace_back("provisioner");
  return stuck;
}

Readiness ReadinessOf(const Activity& activity, const ResourceActivities& resources) {
  Readiness readiness;
  if (!activity.node.uevents_connected) {
    readiness.warnings.emplace_back("the kernel sends no device events: discovery runs every ten seconds");
  }
  if (!activity.serving) {
    readiness.missing.push_back({"", "the first reconcile pass is not done"});
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

bool IsStandby(const ResourceActivities& resources) {
  return !resources.empty() &&
         std::ranges::all_of(resources, [](const auto& resource) { return resource->standby.load(); });
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

http::HttpResponse HealthzAnswer(const Heartbeats& beats) {
  const auto stuck = StuckThreads(beats);
  if (stuck.empty()) return JsonAnswer(kGood, {{"status", "alive"}});
  return JsonAnswer(kBad, {{"status", "stuck"}, {"threads", stuck}});
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
