// StartBindServer: a BindServer that serves on a thread of its own until the end of the result.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "deviceplugin/services/late_binding/bind_server.h"
#include "tests/support/service/running.h"

namespace railhead::testing {

class BindServerService : public Service {
 public:
  explicit BindServerService(std::unique_ptr<late_binding::BindServer> server) : server_(std::move(server)) {}
  [[nodiscard]] std::string_view name() const override { return "binder"; }
  void Register(MetricRegistry&) override {}
  Result<void> Run(Worker& worker) override {
    server_->Run(worker);
    return {};
  }

 private:
  std::unique_ptr<late_binding::BindServer> server_;
};

inline Result<Running<BindServerService>> StartBindServer(const Root& root,
                                                          late_binding::BindServer::Answer answer,
                                                          late_binding::BindServer::Report report) {
  auto server = RH_TRY(late_binding::BindServer::Listen(root, std::move(answer), std::move(report)));
  return Running<BindServerService>(std::make_unique<BindServerService>(std::move(server)));
}

}  // namespace railhead::testing
