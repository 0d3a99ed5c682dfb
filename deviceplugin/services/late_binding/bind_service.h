// BindService: binds pods' slots to devices for ADD (binder.h, bind_requests.h, bind_server.h).
//
// It listens from the first view on: of two railheadds (an update) the earlier one answers until then.
//
// Ownership: borrows view and log. Threads: as Service. Errors: of Run(): kIo when it cannot listen.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "cni/state/bind_protocol.h"
#include "deviceplugin/node/snapshot/binding_view.h"
#include "deviceplugin/services/late_binding/bind_requests.h"
#include "deviceplugin/services/late_binding/binder.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::late_binding {

class BindService : public Service {
 public:
  // `allocated`: what kubelet has allocated; it needs a time limit of its own.
  BindService(Root root, const Published<BindingView>& view, Binder::AllocatedSource allocated, Log* log)
      : root_(std::move(root)),
        view_(view),
        none_(view.Get()),
        binder_(root_, view, std::move(allocated)),
        requests_([this](const BindRequest& request) { return binder_.Bind(request); }, log) {}

  [[nodiscard]] std::string_view name() const override { return "binder"; }
  void Register(MetricRegistry& metrics) override { requests_.Register(metrics); }
  Result<void> Run(Worker& worker) override;

 private:
  const Root root_;
  const Published<BindingView>& view_;
  const std::shared_ptr<const BindingView> none_;  // before the first one
  Binder binder_;
  BindRequests requests_;
};

}  // namespace railhead::late_binding
