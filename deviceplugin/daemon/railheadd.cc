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

#include "cni/fabric/fabric.h"
#include "cni/state/attach_log.h"
#include "deviceplugin/daemon/daemon.h"
#include "deviceplugin/daemon/events_log.h"
#include "deviceplugin/daemon/pages.h"
#include "deviceplugin/daemon/systemd.h"
#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/services/fabric_follow/follower.h"
#include "deviceplugin/services/kubelet/stale_sockets.h"
#include "deviceplugin/services/node_index/index_config.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/services/provision/provisioner.h"
#include "deviceplugin/services/provision/report.h"
#include "deviceplugin/services/reachability/reachability_settings.h"
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

int RunDaemon(const Root& root, Kernel& kernel, const CommandLine& line, Daemon::Interfaces interfaces,
              const sigset_t& signals, Log* log) {
  ProbeWorkers probes;
  const auto node =
      PlanNode(root, kernel, line.source, resources::DdpOfKernel(root, probes), {&probes, nullptr});
  if (!node) {
    log->Failure("cannot start", node.error());
    return kBadConfig;
  }
  LogPlan(log, node->plan);
  WarnOfHiddenNamespaces(root, log);
  for (const std::string& name : kubelet::RemoveStaleSockets(root.Path(line.kubelet_directory)))
    log->Info("removed a stale socket", {{"socket", name}});
  // kubelet does not call Allocate again after a reboot, which empties the directory of device files.
  if (const auto restored = RestoreAllocated(root, node->plan.pools); !restored)
    log->Warning("restoring an allocation failed", restored.error());
  auto daemon = Daemon::Start(root, kernel, probes, line, *node, std::move(interfaces), log);
  if (!daemon) {
    log->Failure("cannot start", daemon.error());
    return kFailed;
  }
  const int status = (*daemon)->Run(signals);
  if (const auto late = (*daemon)->StillRunning(); !late.empty()) {
    log->Warning("ended without these, which do not stop",
                 Error{ErrorCode::kTimeout, Join(late, ", "), {}, 0});
    std::_Exit(status);
  }
  return status;
}

// The path may be too long for a socket: then railheadd goes on without.
std::optional<http::HttpAddress> SocketOf(const CommandLine& line, Log* log) {
  if (line.http_socket.empty()) return std::nullopt;
  const auto address = http::ParseHttpAddress("unix:" + line.http_socket);
  if (!address) {
    log->Warning("serving probes failed", address.error());
    return std::nullopt;
  }
  return *address;
}

// Before the fabric is read for the first time: it may have changed while no railheadd ran.
std::unique_ptr<fabric_follow::Follower> Follow(const Root& root, const CommandLine& line, Log* log) {
  if (line.follow_config.empty()) {
    // Of an earlier railheadd with another command line.
    (void)RemoveFile(fabric_follow::kFollowFile.PathIn(root));
    return nullptr;
  }
  auto follower = std::make_unique<fabric_follow::Follower>(root, line.follow_config, log);
  follower->Step();
  return follower;
}

// In a cluster the fabric may come after railheadd, which answers probes meanwhile. Then `railctl fabric
// suggest` can run in its container. Other sources have to be there before.
void AwaitFabric(const Root& root, const CommandLine& line, fabric_follow::Follower* follower,
                 const provision::ApplyWatch& watch) {
  constexpr std::chrono::milliseconds kPause{500};
  if (follower == nullptr || line.source.sriovdp || line.source.fabric) return;
  const auto has_none = [&root] {
    return !Exists(root.Path(kFabricPath)) && !Exists(root.Path(resources::kSriovdpConfigPath));
  };
  while (has_none() && !watch.Stopped()) {
    watch.ReportProgress("waiting for a fabric: " + follower->Refused());
    std::this_thread::sleep_for(kPause);
    follower->Step();
  }
}

int Serve(const Root& root, Kernel& kernel, const CommandLine& line, Log* log) {
  const sigset_t signals = BlockSignals();
  Daemon::Interfaces interfaces{
      SystemdNotifier::TakeEnvironment(),
      std::make_unique<Pages>(line.http_address, SocketOf(line, log), log),
      {Environment("KUBERNETES_SERVICE_HOST"), Environment("KUBERNETES_SERVICE_PORT")},
      Follow(root, line, log)};
  // Answers on the pages until the daemon does.
  StartupResponder starting(interfaces.environment, *interfaces.pages, signals, log);
  AwaitFabric(root, line, interfaces.follower.get(), starting.Watch());
  const auto provisioned = ProvisionAtStart(root, kernel, line.source, starting.Watch(), log);
  if (const int signal = starting.End(); signal != 0) {
    log->Info("stopped", {{"signal", ::sigabbrev_np(signal)}});
    interfaces.pages.reset();  // they call `starting`
    return kStopped;
  }
  if (!provisioned) {
    log->Failure("cannot start", provisioned.error());
    return kBadConfig;
  }
  return RunDaemon(root, kernel, line, std::move(interfaces), signals, log);
}

int List(const Root& root, Kernel& kernel, const CommandLine& line, Log* log) {
  const auto node = PlanNode(root, kernel, line.source);
  if (!node) {
    log->Failure("cannot start", node.error());
    return kBadConfig;
  }
  (void)std::printf("%s\n", record::Dump(ToJson(node->plan), 2).c_str());
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

namespace {

Result<inventory::HostNetwork> AskHostNetwork(const Root& root, Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto route = RH_TRY(kernel.OpenRoute(host));
  return inventory::ReadHostNetwork(root, *route);
}

Result<bool> IsExclusive(Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto rdma = kernel.OpenRdma(host);
  if (!rdma) return false;  // no RDMA, no mode
  return RH_TRY((*rdma)->NetnsMode()) == RdmaNetnsMode::kExclusive;
}

// Allocate names device nodes before the move, which can change their numbers. Users of config.json run it
// that way, with rdma-cni. In an RDMA namespace of its own a pod cannot open another pod's nodes: the kernel
// refuses. A fabric states what it wants, and has a way that works.
Result<void> JudgeNodesInExclusiveMode(Kernel& kernel, resources::Plan* plan) {
  std::vector<std::string> resources;
  for (const auto& pool : plan->pools) {
    if (pool->spec.rdma_nodes != resources::RdmaNodes::kNone) resources.push_back(pool->spec.resource);
  }
  if (resources.empty() || !RH_TRY(IsExclusive(kernel))) return {};
  const std::string gives = plan->config_path + ": " + Join(resources, ", ") +
                            " delivers plain RDMA device nodes, but the node's RDMA mode is exclusive";
  if (plan->of_fabric) {
    return Fail(ErrorCode::kInvalid, gives, R"(use "deviceNodes": "cdi", or: rdma system set netns shared)");
  }
  plan->warnings.push_back({ErrorCode::kInvalid, gives + ": the nodes may have other numbers after the move",
                            "a pool of fabric.json with \"deviceNodes\": \"cdi\" names them after it", 0});
  return {};
}

Result<void> CheckNodeStatusSettings(const Root& root, const std::string& path) {
  const auto fabric = RH_TRY(ReadFabric(root, path));
  if (fabric) RH_TRY(node_status::ParseNodeStatusSettings(fabric->node_status, path, fabric->rails.size()));
  return {};
}

}  // namespace

Result<NodePlan> PlanNode(const Root& root, Kernel& kernel, const resources::ConfigSource& source,
                          const resources::DdpLookup& ddp, const inventory::PfReads& reads) {
  const inventory::HostNetwork host =
      RH_TRY_WRAP(AskHostNetwork(root, kernel), "reading which NICs the host itself needs");
  resources::Plan plan = RH_TRY(MakePlan(root, source, host, ddp, reads));
  RH_TRY(JudgeNodesInExclusiveMode(kernel, &plan));
  health::HealthRules health = RH_TRY(health::ParseHealthRules(plan.health, plan.config_path));
  // Other parts apply these, some at start only; but report a mistake now.
  if (plan.of_fabric) {
    RH_TRY(provision::ReadProvision(root, plan.config_path));
    RH_TRY(node_index::CheckIndexConfig(root, plan.config_path));
    RH_TRY(reachability::ReadReachabilitySettings(root, plan.config_path));
    RH_TRY(CheckNodeStatusSettings(root, plan.config_path));
  }
  return NodePlan{std::move(plan), std::move(health)};
}

namespace {

void LogOutcome(const provision::PfOutcome& pf, Log* log) {
  const provision::PfActual& actual = pf.plan.actual;
  const std::string device = actual.address.ToString();
  const std::string steps = Join(StepsOf(pf.plan), "; ");
  if (pf.error) {
    log->Warning(pf.plan.refused ? "the PF's VFs differ from the fabric, and are not changed"
                                 : "making the PF's VFs as in the fabric failed",
                 *pf.error, {{"pf", device}, {"rail", actual.rail}, {"steps", steps}});
  } else if (pf.Changed()) {
    log->Info("made the PF's VFs as in the fabric",
              {{"pf", device}, {"rail", actual.rail}, {"steps", steps}});
  }
}

}  // namespace

Result<void> ProvisionAtStart(const Root& root, Kernel& kernel, const resources::ConfigSource& source,
                              const provision::ApplyWatch& watch, Log* log) {
  if (source.sriovdp) return {};
  const auto provision = RH_TRY(provision::ReadProvision(root, source.fabric.value_or(kFabricPath)));
  if (!provision || !provision->settings.at_start) return {};
  provision::SysfsControl control(root);
  const auto outcome =
      ApplyVfs(root, kernel, control, *provision, std::nullopt, provision::kProvisionLimit, watch);
  if (!outcome) {
    log->Warning("making VFs as in the fabric failed", outcome.error());
    return {};
  }
  for (const provision::PfOutcome& pf : outcome->pfs) LogOutcome(pf, log);
  return {};
}

}  // namespace railhead::daemon
