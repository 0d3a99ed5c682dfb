#include "deviceplugin/services/kubelet/watcher_service.h"

#include <utility>

namespace railhead::kubelet {

WatcherService::WatcherService(std::string resource, std::function<int()> streams_so_far,
                               std::function<void()> on_verdict)
    : resource_(std::move(resource)),
      streams_so_far_(std::move(streams_so_far)),
      on_verdict_(std::move(on_verdict)) {}

grpc::ServerUnaryReactor* WatcherService::GetInfo(grpc::CallbackServerContext* context,
                                                  const pluginregistration::InfoRequest* /*request*/,
                                                  pluginregistration::PluginInfo* response) {
  response->set_type("DevicePlugin");
  response->set_name(resource_);
  response->add_supported_versions("v1beta1");
  const int streams = streams_so_far_();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    verdict_.pending = true;
    verdict_.asked_at = std::chrono::steady_clock::now();
    verdict_.streams_before = streams;
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

// kubelet opens ListAndWatch before or after this call: hence the count of before GetInfo.
grpc::ServerUnaryReactor* WatcherService::NotifyRegistrationStatus(
    grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
    pluginregistration::RegistrationStatusResponse* /*response*/) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++verdict_.number;
    verdict_.pending = false;
    verdict_.registered = request->plugin_registered();
    verdict_.error = request->error();
  }
  on_verdict_();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

WatcherVerdict WatcherService::verdict() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return verdict_;
}

}  // namespace railhead::kubelet
