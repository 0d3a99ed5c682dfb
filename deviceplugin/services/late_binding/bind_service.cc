#include "deviceplugin/services/late_binding/bind_service.h"

#include "deviceplugin/services/late_binding/bind_server.h"

namespace railhead::late_binding {

Result<void> BindService::Run(Worker& worker) {
  view_.Subscribe(worker);
  while (!worker.StopRequested() && view_.Get() == none_) worker.Wait(Worker::Clock::time_point::max());
  if (worker.StopRequested()) return {};
  const auto server = RH_TRY(BindServer::Listen(root_, requests_));
  server->Run(worker);
  return {};
}

}  // namespace railhead::late_binding
