#include "deviceplugin/services/kubelet/registrar_event.h"

#include "netns/base/text.h"

namespace railhead::kubelet {

void LogEvent(Log* log, const Event& event) {
  switch (event.kind) {
    case EventKind::kServing:
      return log->Debug("serving", {{"resource", event.resource}, {"socket", event.detail}});
    case EventKind::kRegistered:
      return log->Info("registered with kubelet", {{"resource", event.resource}, {"kubelet", event.detail}});
    case EventKind::kRegisterFailed:
      return log->Warning("registration failed", *event.error, {{"resource", event.resource}});
    case EventKind::kServeFailed:
      return log->Failure("serving failed", *event.error, {{"resource", event.resource}});
    case EventKind::kKubeletGone:
      return log->Info("registering again", {{"resource", event.resource}, {"because", event.detail}});
    case EventKind::kStandby:
      return log->Info("standby: a newer railheadd serves the resource",
                       {{"resource", event.resource}, {"socket", event.detail}});
    case EventKind::kCall:
      break;
  }
  const std::string devices = Join(event.device_ids, ",");
  if (!event.rewritten.empty()) {
    log->Warning(
        "CDI specs were missing or changed and are written again: another program removes or changes them",
        {{"resource", event.resource}, {"devices", Join(event.rewritten, ",")}});
  }
  if (event.cdi_unread) {
    log->Warning("no container runtime read the CDI specs: check that CDI is enabled in its configuration",
                 {{"resource", event.resource}, {"devices", devices}});
  }
  if (event.error) {
    log->Warning("refused", *event.error,
                 {{"call", event.detail}, {"resource", event.resource}, {"devices", devices}});
  } else {
    log->Info("answered", {{"call", event.detail}, {"resource", event.resource}, {"devices", devices}});
  }
}

}  // namespace railhead::kubelet
