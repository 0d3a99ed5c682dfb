#include "deviceplugin/daemon/railheadd.h"

#include <grpc/support/log.h>
#include <malloc.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "cni/state/attach_log.h"
#include "deviceplugin/daemon/command_line.h"
#include "deviceplugin/daemon/daemon.h"
#include "deviceplugin/daemon/events_log.h"
#include "deviceplugin/daemon/node_plan.h"
#include "deviceplugin/daemon/notify.h"
#include "deviceplugin/daemon/pages.h"
#include "deviceplugin/daemon/provision_at_start.h"
#include "deviceplugin/daemon/starting.h"
#include "deviceplugin/node/resources/restore.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "deviceplugin/services/reconcile/timings.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/files.h"
#include "netns/linux_kernel.h"
#include "netns/ns/propagation.h"

namespace railhead {
namespace {

// The signals that end the daemon, and the one that makes it look again, blocked in every
// thread and waited for in one.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  (void)::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// gRPC prints what goes wrong in a form of its own, among our lines; whatever matters of it reaches
// us as a status.
void QuietGrpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) ::gpr_set_log_function([](gpr_log_func_args*) {});
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Deleted and hidden look alike, so railheadd leaves the attachments there alone.
void WarnOfHiddenNamespaces(const Root& root, Log* log) {
  for (const char* directory : kNetnsDirectories) {
    const auto sees = SeesMountsOfHost(root, directory);
    if (!Exists(root.Path(directory)) || sees.value_or(true)) continue;
    log->Warning("NICs of pods that are gone will not come back",
                 Error{ErrorCode::kUnsupported,
                       std::string(directory) +
                           " is on a private mount: namespaces that the host makes later do not show here",
                       "mount it with mountPropagation: HostToContainer (rslave)", 0});
  }
}

int RunDaemon(const Root& root, Kernel& kernel, const CommandLine& line, Daemon::Outlets outlets,
              const sigset_t& signals, Log* log) {
  const auto node = PlanNode(root, kernel, line.source);
  if (!node) {
    log->Failure("cannot start", node.error());
    return kBadConfig;
  }
  LogPlan(log, node->plan);
  WarnOfHiddenNamespaces(root, log);
  for (const std::string& directory : {line.kubelet_directory, line.registry_directory}) {
    for (const std::string& name : RemoveStaleSockets(root.Path(directory)))
      log->Info("removed a socket that nobody listened on", {{"socket", name}});
  }
  // kubelet does not allocate again after a reboot, which empties their directory.
  if (const auto restored = RestoreAllocated(root, node->plan.pools); !restored)
    log->Warning("cannot restore what an allocated device had", restored.error());
  auto daemon = Daemon::Start(root, kernel, line, *node, std::move(outlets), log);
  if (!daemon) {
    log->Failure("cannot start", daemon.error());
    return kFailed;
  }
  const int status = (*daemon)->Run(signals);
  if (!(*daemon)->Ended()) std::_Exit(status);
  return status;
}

int Serve(const Root& root, Kernel& kernel, const CommandLine& line, Log* log) {
  const sigset_t signals = BlockSignals();
  Daemon::Outlets outlets{Notify::TakeEnvironment(),
                          std::make_unique<Pages>(line.http_address, log),
                          {Environment("KUBERNETES_SERVICE_HOST"), Environment("KUBERNETES_SERVICE_PORT")}};
  // Answers on the pages until the daemon does.
  Starting starting(outlets.environment, *outlets.pages, signals, log);
  const auto provisioned = ProvisionAtStart(root, kernel, line.source, starting.Watch(), log);
  if (const int signal = starting.End(); signal != 0) {
    log->Info("stopped", {{"signal", ::sigabbrev_np(signal)}});
    outlets.pages.reset();  // they ask `starting`
    return kStopped;
  }
  if (!provisioned) {
    log->Failure("cannot start", provisioned.error());
    return kBadConfig;
  }
  return RunDaemon(root, kernel, line, std::move(outlets), signals, log);
}

int List(const Root& root, Kernel& kernel, const CommandLine& line, Log* log) {
  const auto node = PlanNode(root, kernel, line.source);
  if (!node) {
    log->Failure("cannot start", node.error());
    return kBadConfig;
  }
  (void)std::printf("%s\n", PlanAsJson(node->plan).c_str());
  return kStopped;
}

int ReconcileOnce(const Root& root, Kernel& kernel) {
  Reconciler reconciler(root, kernel, SinglePass());
  const ReconcileReport report = reconciler.Run();
  (void)std::printf("%s\n", ReportAsJson(report).c_str());
  return report.Failed() ? kFailed : kStopped;
}

int ShowTimings(const Root& root, Log* log) {
  const auto timings = ReadAttachTimings(root);
  if (!timings) {
    log->Failure("cannot read the attach log", timings.error());
    return kFailed;
  }
  (void)std::printf("%s\n", TimingsAsJson(*timings).c_str());
  return kStopped;
}

}  // namespace

int RunRailheadd(int argc, char** argv) {
  // Under a umask of 0 everybody could connect to the sockets that gRPC makes.
  (void)::umask(::umask(0077) | 0022);
  // glibc would give every gRPC thread a heap of its own.
  (void)::mallopt(M_ARENA_MAX, 2);
  QuietGrpc();
  CommandLine line;
  if (const auto status = ParseCommandLine(argc, argv, &line)) return *status;
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const Root root(prefix != nullptr ? prefix : "");
  Log log(line.log_level, line.log_format);
  for (const std::string& argument : line.dropped_arguments)
    log.Info("ignored an argument that only steers glog's files", {{"argument", argument}});
  LinuxKernel kernel(root, LinuxKernel::Bpf::kLeftAlone);
  if (line.reconcile_once) return ReconcileOnce(root, kernel);
  if (line.timings) return ShowTimings(root, &log);
  if (line.list) return List(root, kernel, line, &log);
  return Serve(root, kernel, line, &log);
}

}  // namespace railhead
