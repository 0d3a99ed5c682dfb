// RegistrationService: introduces a plugin to kubelet's plugin watcher.
//
// kubelet dials each socket that appears in its plugins_registry and calls GetInfo. Then it connects to the
// plugin's endpoint, and reports by NotifyRegistrationStatus whether it has taken the plugin. It repeats all
// of this after a failure, with growing pauses. It waits one second for GetInfo, so the answer is constant.
// When the socket's file goes, kubelet deregisters the plugin.
// Source: pkg/kubelet/pluginmanager, Kubernetes 1.36.
//
// The caller adds the service to a gRPC server of its own. The endpoint must be served before that server
// makes its socket.
// Threads: thread-safe. `on_verdict` is called from gRPC's threads and must not block.
// Errors: none of its own. kubelet's refusal is a verdict.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <vector>

#include "deviceplugin/support/plugin_registration/proto/pluginregistration_v1.grpc.pb.h"

namespace railhead::plugin_registration {

struct PluginInfo {
  std::string type;  // "DRAPlugin", "DevicePlugin" or "CSIPlugin"
  std::string name;  // of a DRA driver: the driver's
  // Absolute path of the plugin's own socket. "": the socket on which kubelet asks.
  std::string endpoint;
  // kubelet takes the first one that it knows. Of DRA: services, as "v1.DRAPlugin".
  std::vector<std::string> supported_versions;
};

struct Verdict {
  bool registered = false;
  std::string error;  // kubelet's words; "" if registered
};

class RegistrationService final : public pluginregistration::Registration::CallbackService {
 public:
  RegistrationService(PluginInfo info, std::function<void(const Verdict&)> on_verdict);

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const pluginregistration::InfoRequest* request,
                                    pluginregistration::PluginInfo* response) override;
  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
      pluginregistration::RegistrationStatusResponse* response) override;

 private:
  const PluginInfo info_;
  const std::function<void(const Verdict&)> on_verdict_;
};

}  // namespace railhead::plugin_registration
