#include "deviceplugin/support/plugin_registration/registration_service.h"

#include <utility>

namespace railhead::plugin_registration {
namespace {

grpc::ServerUnaryReactor* AnswerOk(grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace

RegistrationService::RegistrationService(PluginInfo info, std::function<void(const Verdict&)> on_verdict)
    : info_(std::move(info)), on_verdict_(std::move(on_verdict)) {}

grpc::ServerUnaryReactor* RegistrationService::GetInfo(grpc::CallbackServerContext* context,
                                                       const pluginregistration::InfoRequest* /*request*/,
                                                       pluginregistration::PluginInfo* response) {
  response->set_type(info_.type);
  response->set_name(info_.name);
  response->set_endpoint(info_.endpoint);
  for (const std::string& version : info_.supported_versions) response->add_supported_versions(version);
  return AnswerOk(context);
}

// An error in place of OK would undo the registration.
grpc::ServerUnaryReactor* RegistrationService::NotifyRegistrationStatus(
    grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
    pluginregistration::RegistrationStatusResponse* /*response*/) {
  on_verdict_({request->plugin_registered(), request->error()});
  return AnswerOk(context);
}

}  // namespace railhead::plugin_registration
