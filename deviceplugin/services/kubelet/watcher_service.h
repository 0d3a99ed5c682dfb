// WatcherService: answers kubelet's plugin watcher, which registers the resource of a socket that
// it finds in its directory (pkg/kubelet/pluginmanager, Kubernetes 1.36).
//
// gRPC is visible here: only plugin_server.cc includes it.
// Threads: thread-safe; calls come from gRPC's threads, and so does `on_verdict`.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <mutex>
#include <string>

#include "deviceplugin/services/kubelet/plugin_server.h"
#include "deviceplugin/services/kubelet/proto/pluginregistration_v1.grpc.pb.h"

namespace railhead::kubelet {

class WatcherService final : public pluginregistration::Registration::CallbackService {
 public:
  // `streams_so_far`: ListAndWatch calls until now.
  WatcherService(std::string resource, std::function<int()> streams_so_far, std::function<void()> on_verdict);

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const pluginregistration::InfoRequest* request,
                                    pluginregistration::PluginInfo* response) override;
  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
      pluginregistration::RegistrationStatusResponse* response) override;

  [[nodiscard]] WatcherVerdict verdict() const;

 private:
  const std::string resource_;
  const std::function<int()> streams_so_far_;
  const std::function<void()> on_verdict_;
  mutable std::mutex mutex_;
  WatcherVerdict verdict_;
};

}  // namespace railhead::kubelet
