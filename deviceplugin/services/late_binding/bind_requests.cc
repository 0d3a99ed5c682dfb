#include "deviceplugin/services/late_binding/bind_requests.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "netns/base/text.h"

namespace railhead::late_binding {

Result<Bindings> BindRequests::Bind(const BindRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  auto answer = bind_(request);
  duration_.Observe(std::chrono::steady_clock::now() - begin);
  (answer ? bound_ : not_bound_.at(static_cast<std::size_t>(answer.error().code))).Add();
  return answer;
}

void BindRequests::LogBinding(const BindRequest& request, const Result<Bindings>& answer) {
  const std::string slots = Join(request.slots, ",");
  if (!answer) {
    return log_->Warning(
        "binding slots failed", answer.error(),
        {{"container_id", request.container_id}, {"pod_uid", request.pod_uid}, {"slots", slots}});
  }
  std::vector<std::string> devices;
  devices.reserve(answer->size());
  for (const auto& [slot, device] : *answer) devices.push_back(device);
  log_->Info("bound", {{"container_id", request.container_id},
                       {"pod_uid", request.pod_uid},
                       {"slots", slots},
                       {"devices", Join(devices, ",")}});
}

void BindRequests::Register(MetricRegistry& metrics) {
  metrics.Add(MetricType::kCounter, "railhead_bind_requests",
              "Requests of ADD to bind slots, by outcome: bound, or the code of the error",
              [this](Exposition& page) {
                page.Sample({{"outcome", "bound"}}, bound_.value());
                for (std::size_t code = 0; code < kErrorCodes; ++code) {
                  const std::uint64_t count = not_bound_.at(code).value();
                  if (count != 0) page.Sample({{"outcome", NameOf(static_cast<ErrorCode>(code))}}, count);
                }
              });
  metrics.Add(MetricType::kHistogram, "railhead_bind_duration_seconds",
              "Time to answer a request of ADD to bind slots",
              [this](Exposition& page) { page.Sample({}, duration_); });
}

}  // namespace railhead::late_binding
