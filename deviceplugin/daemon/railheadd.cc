#include "deviceplugin/daemon/railheadd.h"

#include <grpc/support/log.h>
#include <malloc.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cni/state/attach_log.h"
#include "deviceplugin/daemon/command_line.h"
#include "deviceplugin/daemon/daemon.h"
#include "deviceplugin/daemon/systemd_notifier.h"
#include "deviceplugin/services/discovery/read_node.h"
#include "deviceplugin/services/kubelet/stale_sockets.h"
#include "deviceplugin/services/reconcile/attach_timings_report.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "deviceplugin/support/http/http_client.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"
#include "netns/linux_kernel.h"
#include "netns/ns/mount_propagation.h"
#include "netns/ns/netns.h"

namespace railhead::daemon {
namespace {

// The signals that end the daemon, and the one that requests a discovery. All threads block them; one waits
// for them.
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

// gRPC would print its errors in a form of its own, among our lines. railheadd gets them as a status.
void QuietGrpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) ::gpr_set_log_function([](gpr_log_func_args*) {});
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// railheadd cannot distinguish a deleted namespace from a hidden one, so it keeps the attachments there.
void WarnOfHiddenNamespaces(const Root& root, Log* log) {
  for (const char* directory : kNetnsDirectories) {
    const auto sees = SeesMountsOfHost(root, directory);
    if (!Exists(root.Path(directory)) || sees.value_or(true)) continue;
    log->Warning(
        "NICs of deleted pods will not be restored",
        Error{ErrorCode::kUnsupported,
              std::string(directory) +
                  " is on a private mount: railheadd does not see namespaces that the host makes later",
              "mount it with mountPropagation: HostToContainer (rslave)", 0});
  }
}

int Serve(const Root& root, Kernel& kernel, const CommandLine& line, Log* log) {
  const sigset_t signals = BlockSignals();
  const Daemon::Interfaces interfaces{
      SystemdNotifier::TakeEnvironment(),
      {Environment("KUBERNETES_SERVICE_HOST"), Environment("KUBERNETES_SERVICE_PORT")}};
  WarnOfHiddenNamespaces(root, log);
  for (const std::string& name : kubelet::RemoveStaleSockets(root.Path(line.kubelet_directory)))
    log->Info("removed a stale socket", {{"socket", name}});
  Daemon daemon(root, kernel, line, interfaces, log);
  const int status = daemon.Run(signals);
  if (const auto late = daemon.StillRunning(); !late.empty()) {
    log->Warning("ended without these, which do not stop",
                 Error{ErrorCode::kTimeout, Join({late.begin(), late.end()}, ", "), {}, 0});
    std::_Exit(status);
  }
  return status;
}

int List(const Root& root, Kernel& kernel, const CommandLine& line, Log* log) {
  const auto node = discovery::ReadNode(root, kernel, line.source);
  if (!node) {
    log->Failure("cannot start", node.error());
    return kBadConfig;
  }
  (void)std::printf("%s\n", record::Dump(ToJson(node->snapshot), 2).c_str());
  return kStopped;
}

int ReconcileOnce(const Root& root, Kernel& kernel) {
  reconcile::Reconciler reconciler(root, kernel, reconcile::SinglePass());
  const reconcile::ReconcileReport report = reconciler.Run();
  (void)std::printf("%s\n", record::Dump(ToJson(report), 2).c_str());
  return report.Failed() ? kFailed : kStopped;
}

// For probes, which kubelet runs in the container.
int AskPage(const CommandLine& line) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  // It is less than the time that the probes of manifests/ give.
  constexpr std::chrono::seconds kLongestAnswer{4};
  http::HttpClient client({.endpoint = {.host = line.http_socket}, .timeout = kLongestAnswer});
  const auto answer =
      client.Send({.method = "GET", .target = line.ask, .headers = {}, .body = {}, .repeatable = true});
  if (!answer) {
    (void)std::fprintf(stderr, "railheadd: %s\n", Describe(answer.error()).c_str());
    return kFailed;
  }
  (void)std::fputs(answer->body.c_str(), stdout);
  return answer->status == 200 ? kStopped : kFailed;
}

int ShowTimings(const Root& root, Log* log) {
  const auto timings = ReadAttachTimings(root);
  if (!timings) {
    log->Failure("cannot read the attach log", timings.error());
    return kFailed;
  }
  (void)std::printf("%s\n", record::Dump(ToJson(reconcile::ReportTimings(*timings)), 2).c_str());
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
  if (!line.ask.empty()) return AskPage(line);
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const Root root(prefix != nullptr ? prefix : "");
  Log log(line.log_level, line.log_format);
  for (const std::string& argument : line.dropped_arguments)
    log.Info("ignored an argument of glog's files", {{"argument", argument}});
  LinuxKernel kernel(root, LinuxKernel::Bpf::kLeftAlone);
  if (line.reconcile_once) return ReconcileOnce(root, kernel);
  if (line.timings) return ShowTimings(root, &log);
  if (line.list) return List(root, kernel, line, &log);
  return Serve(root, kernel, line, &log);
}

}  // namespace railhead::daemon
