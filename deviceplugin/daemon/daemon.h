// Daemon: the list of railheadd's services, its HTTP pages, and its end.
//
// Services know each other only by the values that one publishes and another reads:
//
//   NodeWatcher          the node, its health, the advertisement, what can be bound
//   Registrar            serves kubelet
//   BindService          binds a pod's slots to devices for ADD
//   HintsService         keeps the guess of a pod's accelerators in step with the node
//   ReconcileService     restores what ended pods had
//   DriftService         compares pods with their NCCL configurations
//   LldpService          finds the switch port of each rail
//   ReachabilityService  probes what the node and its pods reach on the rails
//   EchoServer           answers other nodes' probes
//   IndexService         claims the node's index in the Kubernetes API, if nodes need one
//   Follower             takes a changed fabric over, if an option names its directory
//   NodeStatusService    reports the node's rails to the cluster, if fabric.json requests it
//   HttpServer           one for all, one for this process's own probes
//
// Ownership: borrows kernel and log. Threads: Run() and StillRunning() on one.
#pragma once

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/daemon/command_line.h"
#include "deviceplugin/daemon/systemd_notifier.h"
#include "deviceplugin/daemon/systemd_status.h"
#include "deviceplugin/node/snapshot/rail_faults.h"
#include "deviceplugin/services/discovery/node_watcher.h"
#include "deviceplugin/services/fabric_follow/follower.h"
#include "deviceplugin/services/kubelet/pod_resources.h"
#include "deviceplugin/services/kubelet/registrar.h"
#include "deviceplugin/services/late_binding/admission_hints.h"
#include "deviceplugin/services/nic_metrics/cached_nic_page.h"
#include "deviceplugin/services/nic_metrics/collector.h"
#include "deviceplugin/services/nic_metrics/nic_page.h"
#include "deviceplugin/services/reconcile/drift_service.h"
#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/http/http_server.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/probe_workers.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/supervisor.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::daemon {

class Daemon {
 public:
  // The interfaces to others, as the environment names them.
  struct Interfaces {
    SystemdNotifier::Environment systemd;
    KubeService kubernetes;
  };

  Daemon(const Root& root, Kernel& kernel, const CommandLine& line, const Interfaces& interfaces, Log* log);

  // Returns the exit status when one of `signals` comes, or when a service cannot go on. SIGHUP only requests
  // a discovery of configuration and hardware.
  int Run(const sigset_t& signals);

  // The services whose threads have not ended within their limits after Run(). If there are any, the process
  // has to end without waiting for them: a driver may not answer, and a reconcile pass can be interrupted
  // anywhere.
  std::vector<std::string_view> StillRunning();

 private:
  // Limits of calls to kubelet's pod-resources API, by the caller that waits.
  static constexpr std::chrono::milliseconds kAdmissionWaits{100};
  static constexpr std::chrono::milliseconds kAddWaits{1000};
  static constexpr std::chrono::seconds kLastAnswers{5};  // to kubelet

  // Each returns what others read of it.
  fabric_follow::Follower& AddFollower(const CommandLine& line);
  discovery::NodeWatcher& AddWatcher(Kernel& kernel, const CommandLine& line);
  kubelet::Registrar& AddRegistrar(const CommandLine& line);
  reconcile::DriftService& AddReconciler(Kernel& kernel, const CommandLine& line);
  void AddFabricServices(Kernel& kernel, const CommandLine& line, const KubeService& kubernetes);
  void AddPages(const CommandLine& line);
  void AddPage(http::HttpServer::Options options);

  Result<void> StartOthers();
  void Tick();
  void LogStuck();
  // Returns the next signal.
  int AwaitSignal(const sigset_t& signals);
  int StatusOf(const Error& failure);
  [[nodiscard]] http::HttpResponse Answer(const http::HttpRequest& request);
  [[nodiscard]] nic_metrics::NicPageSources CollectNics();

  const Root root_;
  Log* const log_;
  ProbeWorkers probes_;
  Published<NodeIndices> claimed_;  // by all nodes of the cluster
  // What ended pods had is restored, by this railheadd or by the other one that runs.
  Published<bool> restored_;
  kubelet::PodResources pod_resources_;
  late_binding::AdmissionHints hints_;
  nic_metrics::NicCollector nics_;
  nic_metrics::CachedNicPage nic_page_;
  MetricRegistry metrics_;
  bool others_run_ = false;
  OncePerChange start_failure_;  // of the others
  std::vector<Supervisor::Stuck> known_stuck_;
  Supervisor supervisor_;  // its services use all of the above
  fabric_follow::Follower& follower_;
  discovery::NodeWatcher& watcher_;
  kubelet::Registrar& registrar_;
  reconcile::DriftService& drift_;
  SystemdStatus systemd_;
};

}  // namespace railhead::daemon
