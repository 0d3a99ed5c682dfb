// railheadd: the node daemon. See --help and docs.
//
// Exit status: 0 stopped by SIGTERM or SIGINT; 1 a failure while running; 2 wrong
// command line; 3 the configuration is missing or wrong.
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/log.h"
#include "deviceplugin/plan.h"
#include "deviceplugin/registrar.h"
#include "deviceplugin/sriovdp_config.h"
#include "netns/base/text.h"
#include "netns/linux_kernel.h"

namespace railhead {
namespace {

enum ExitStatus : int { kStopped = 0, kFailed = 1, kUsage = 2, kBadConfig = 3 };

struct CommandLine {
  ConfigSource source;
  std::string kubelet_directory = "/var/lib/kubelet/device-plugins";
  std::string log_level = "info";
  bool list = false;
};

// Fills `line`, or returns the status to exit with.
std::optional<int> ParseCommandLine(int argc, char** argv, CommandLine* line) {
  CLI::App app("railheadd: gives SR-IOV RoCE NICs to kubelet as extended resources");
  std::string fabric;
  std::string config_file;
  std::string prefix = kSriovdpPrefix;
  const auto absolute = [](const std::string& path) {
    return !path.empty() && path[0] == '/' ? std::string() : "'" + path + "' is no absolute path";
  };
  app.set_version_flag("--version", std::string("railheadd ") + RAILHEAD_VERSION);
  auto* fabric_option = app.add_option("--fabric", fabric, "The fabric (default: /etc/railhead/fabric.json)");
  auto* config_option = app.add_option("--config-file", config_file,
                                       "sriov-network-device-plugin's config.json, instead of a fabric");
  fabric_option->check(absolute)->excludes(config_option);
  config_option->check(absolute);
  app.add_option("--resource-prefix", prefix, "Prefix of config.json's resources without resourcePrefix")
      ->capture_default_str();
  app.add_option("--kubelet-dir", line->kubelet_directory, "Directory of kubelet.sock")
      ->check(absolute)
      ->capture_default_str();
  app.add_option("--log-level", line->log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_flag("--list", line->list, "Print what would be advertised, as JSON, and exit");
  app.footer(
      "Exit status: 0 stopped by a signal, 1 failed while running, 2 wrong command line, 3 configuration "
      "missing "
      "or wrong.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kStopped : kUsage;
  }
  if (!fabric.empty()) line->source.fabric = fabric;
  if (!config_file.empty()) line->source.sriovdp = config_file;
  line->source.resource_prefix = prefix;
  return std::nullopt;
}

Result<HostNetwork> AskHostNetwork(Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  return ReadHostNetwork(*route);
}

// Device nodes are named in Allocate, before the move that can change their numbers.
Result<void> RefuseNodesInExclusiveMode(Kernel& kernel, const Plan& plan) {
  for (const auto& pool : plan.pools) {
    if (pool->spec.rdma_nodes == RdmaNodes::kNone) continue;
    const NetNs host = RH_TRY(kernel.HostNetns());
    const auto rdma = kernel.OpenRdma(host);
    if (!rdma) return {};  // no RDMA, no mode
    if (RH_TRY((*rdma)->NetnsMode()) == RdmaNetnsMode::kShared) return {};
    return Fail(ErrorCode::kInvalid,
                plan.config_path + ": " + pool->spec.resource +
                    " gives out plain RDMA device nodes, but the " + "node's RDMA mode is exclusive",
                "use a pool of fabric.json with \"delivery\": \"cdi\", or: rdma system set netns shared");
  }
  return {};
}

void LogEvent(Log* log, const Event& event) {
  switch (event.kind) {
    case EventKind::kServing:
      return log->Debug("serving", {{"resource", event.resource}, {"socket", event.detail}});
    case EventKind::kRegistered:
      return log->Info("registered with kubelet", {{"resource", event.resource}, {"kubelet", event.detail}});
    case EventKind::kRegisterFailed:
      return log->Warning("not registered", *event.error, {{"resource", event.resource}});
    case EventKind::kServeFailed:
      return log->Failure("cannot serve", *event.error, {{"resource", event.resource}});
    case EventKind::kKubeletGone:
      return log->Info("registering again", {{"resource", event.resource}, {"because", event.detail}});
    case EventKind::kStandingBy:
      return log->Info("standing by: a newer railheadd serves the resource",
                       {{"resource", event.resource}, {"socket", event.detail}});
    case EventKind::kCall:
      break;
  }
  const std::string devices = Join(event.device_ids, ",");
  if (event.error) {
    log->Warning("refused", *event.error,
                 {{"call", event.detail}, {"resource", event.resource}, {"devices", devices}});
  } else {
    log->Info("answered", {{"call", event.detail}, {"resource", event.resource}, {"devices", devices}});
  }
}

void LogPlan(Log* log, const Plan& plan) {
  for (const std::string& rail : plan.absent_rails) {
    log->Warning("this node has no PF for a rail", {{"rail", rail}, {"config", plan.config_path}});
  }
  for (const auto& pool : plan.pools) {
    log->Info("advertising",
              {{"resource", pool->spec.resource}, {"devices", std::to_string(pool->members.size())}});
  }
}

// The signals that end the daemon, blocked in every thread and waited for in one.
sigset_t BlockEndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  (void)::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// In containers every process is number 1, so the time is part of the name.
std::string SocketTag() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::array<char, 32> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%d-%llx", ::getpid(),
                      static_cast<unsigned long long>(now / std::chrono::milliseconds(1)));
  return buffer.data();
}

int Serve(const Root& root, const CommandLine& line, const Plan& plan, Log* log) {
  const sigset_t signals = BlockEndingSignals();
  const std::string directory = root.Path(line.kubelet_directory);
  for (const std::string& name : RemoveStaleSockets(directory)) {
    log->Info("removed a socket that nobody listened on", {{"socket", name}});
  }
  Registrar registrar({root, directory, SocketTag()}, plan.pools,
                      [log](const Event& event) { LogEvent(log, event); });
  Result<void> ran;
  std::thread loop([&] {
    ran = registrar.Run();
    if (!ran) ::kill(::getpid(), SIGTERM);
  });
  int signal = 0;
  sigwait(&signals, &signal);
  registrar.Stop();
  loop.join();
  if (!ran) {
    log->Failure("stopped", ran.error());
    return kFailed;
  }
  log->Info("stopped", {{"signal", ::sigabbrev_np(signal)}});
  return kStopped;
}

int Main(int argc, char** argv) {
  // glibc would give every gRPC thread a heap of its own.
  (void)::mallopt(M_ARENA_MAX, 2);
  CommandLine line;
  if (const auto status = ParseCommandLine(argc, argv, &line)) return *status;
  const char* prefix = std::getenv("RAILHEAD_ROOT");
  const Root root(prefix != nullptr ? prefix : "");
  Log log(line.log_level);
  LinuxKernel kernel(root);
  const auto host = AskHostNetwork(kernel);
  if (!host) {
    // Without this a NIC that the node lives on could be given to a pod.
    log.Failure("cannot tell which NICs the host itself needs", host.error());
    return kFailed;
  }
  const auto plan = MakePlan(root, line.source, *host);
  if (!plan) {
    log.Failure("cannot start", plan.error());
    return kBadConfig;
  }
  if (const auto possible = RefuseNodesInExclusiveMode(kernel, *plan); !possible) {
    log.Failure("cannot start", possible.error());
    return kBadConfig;
  }
  if (line.list) {
    (void)std::printf("%s\n", PlanAsJson(*plan).c_str());
    return kStopped;
  }
  LogPlan(&log, *plan);
  return Serve(root, line, *plan, &log);
}

}  // namespace
}  // namespace railhead

int main(int argc, char** argv) {
  return railhead::Main(argc, argv);
}
