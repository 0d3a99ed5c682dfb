// StartBindServer: a BindServer that serves on a thread of its own until the end of the result.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "deviceplugin/services/late_binding/bind_requests.h"
#include "deviceplugin/services/late_binding/bind_server.h"
#include "deviceplugin/support/log/log.h"
#include "tests/support/service/running.h"

namespace railhead::testing {

class BindServerService : public Service {
 public:
  explicit BindServerService(late_binding::BindRequests::Binding bind)
      : requests_(std::move(bind), &quiet_) {}
  Result<void> Listen(const Root& root) {
    server_ = RH_TRY(late_binding::BindServer::Listen(root, requests_));
    return {};
  }
  [[nodiscard]] std::string_view name() const override { return "binder"; }
  void Register(MetricRegistry&) override {}
  Result<void> Run(Worker& worker) override {
    server_->Run(worker);
    return {};
  }

 private:
  Log quiet_{"error"};
  late_binding::BindRequests requests_;
  std::unique_ptr<late_binding::BindServer> server_;
};

inline Result<Running<BindServerService>> StartBindServer(const Root& root,
                                                          late_binding::BindRequests::Binding bind) {
  auto service = std::make_unique<BindServerService>(std::move(bind));
  RH_TRY(service->Listen(root));
  return Running<BindServerService>(std::move(service));
}

}  // namespace railhead::testing
