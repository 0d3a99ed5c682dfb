// Service: a part of railheadd that runs on a thread of its own.
//
// All of them have this form. A service gets what it reads in its constructor, mostly as Published values. It
// publishes what others read. Settings, log lines and metrics are in its folder.
// Threads: Run() on the service's own, all others before it.
#pragma once

#include <string_view>

#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/worker.h"
#include "netns/base/result.h"

namespace railhead {

class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  // As /healthz and the metric railhead_thread_alive name it: lower case, at most 15 letters.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // What it counts. The registry asks the service for as long as both exist.
  virtual void Register(MetricRegistry& metrics) = 0;
  // Until `worker` requests the stop. An error is one that no retry repairs: it ends railheadd.
  virtual Result<void> Run(Worker& worker) = 0;
};

}  // namespace railhead
