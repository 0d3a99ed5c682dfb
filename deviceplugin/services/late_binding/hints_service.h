// HintsService: keeps the AdmissionHints in step with the node. It asks kubelet and the accelerators' driver,
// which may take long, so that no call of kubelet does.
//
// Ownership: borrows hints and view. Threads: as Service. Errors: none.
#pragma once

#include <memory>
#include <string_view>

#include "deviceplugin/node/snapshot/binding_view.h"
#include "deviceplugin/services/late_binding/admission_hints.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"

namespace railhead::late_binding {

class HintsService : public Service {
 public:
  HintsService(AdmissionHints& hints, const Published<BindingView>& view)
      : hints_(hints), view_(view), none_(view.Get()) {}

  // Whether the hints know the node.
  [[nodiscard]] const Published<bool>& ready() const { return ready_; }

  [[nodiscard]] std::string_view name() const override { return "admission_hints"; }
  void Register(MetricRegistry&) override {}
  Result<void> Run(Worker& worker) override {
    view_.Subscribe(worker);
    while (!worker.StopRequested()) {
      const auto view = view_.Get();
      if (view != none_) {
        hints_.Update(view->topology, view->accelerators);
        if (!*ready_.Get()) ready_.Set(true);
      }
      while (!worker.StopRequested() && view_.Get() == view) worker.Wait(Worker::Clock::time_point::max());
    }
    return {};
  }

 private:
  AdmissionHints& hints_;
  const Published<BindingView>& view_;
  const std::shared_ptr<const BindingView> none_;  // before the first one
  Published<bool> ready_;
};

}  // namespace railhead::late_binding
