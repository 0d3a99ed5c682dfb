// RegisterResources: the metrics of the resources' connections to kubelet, and of the advertised devices.
// Threads: as MetricRegistry.
#pragma once

#include <optional>

#include "deviceplugin/node/snapshot/advertisement.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/published.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

class Registrar;

// `registrar` outlives `metrics`.
void RegisterResources(MetricRegistry& metrics, const Registrar& registrar);

// By health and by whether a pod has them. `advertisement` outlives `metrics`.
void RegisterDevices(MetricRegistry& metrics, const Root& root,
                     const Published<std::optional<Advertisement>>& advertisement);

}  // namespace railhead::kubelet
