// Daemon: starts and stops the parts of railheadd, which run side by side.
//
//   Registrar          Serves kubelet, with one thread and gRPC's.
//   NodeWatcher        Keeps the advertisement in step with the node.
//   BindServer         Binds a pod's slots to devices for ADD.
//   Reconciler         Restores what ended pods had, by passes.
//   DriftWatch         Compares pods with their NCCL configurations, by passes.
//   LldpWatch          Finds the switch port of each rail.
//   ReachabilityWatch  Probes what the node and its pods reach on the rails.
//   IndexClaiming      Claims the node's index in the Kubernetes API, if nodes need one.
//   Follower           Takes a changed fabric over, if an option names its directory.
//   NodeStatusService  Reports the node's rails to the cluster, if fabric.json requests it.
//   Pages              Serves metrics, probes and, on request, the NICs' counters.
//
// Ownership: borrows kernel, probes and log. Threads: Start(), Run() and Ended() on one.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "deviceplugin/daemon/activity.h"
#include "deviceplugin/daemon/events_log.h"
#include "deviceplugin/daemon/node_watcher.h"
#include "deviceplugin/daemon/pages.h"
#include "deviceplugin/daemon/railheadd.h"
#include "deviceplugin/daemon/systemd.h"
#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/fabric_follow/follower.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/kubelet/pod_resources.h"
#include "deviceplugin/services/kubelet/registrar.h"
#include "deviceplugin/services/kubelet/resource_activity.h"
#include "deviceplugin/services/late_binding/bind_server.h"
#include "deviceplugin/services/late_binding/binder.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/lldp/lldp_service.h"
#include "deviceplugin/services/lldp/node_labels.h"
#include "deviceplugin/services/nic_metrics/collector.h"
#include "deviceplugin/services/nic_metrics/nic_page.h"
#include "deviceplugin/services/node_index/index_service.h"
#include "deviceplugin/services/node_status/node_status_service.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reachability/reachability_service.h"
#include "deviceplugin/services/reachability/reachability_watch.h"
#include "deviceplugin/services/reconcile/reconciler.h"
#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "deviceplugin/support/service/probe_workers.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/worker/worker.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::daemon {

class Daemon {
 public:
  // The interfaces to others, taken over from the start.
  struct Interfaces {
    SystemdNotifier::Environment environment;
    std::unique_ptr<Pages> pages;
    KubeService kubernetes;  // the Kubernetes API, as the environment names it
    std::unique_ptr<fabric_follow::Follower> follower = nullptr;  // null: nothing is followed
  };

  // Errors: kIo without free descriptors.
  static Result<std::unique_ptr<Daemon>> Start(const Root& root, Kernel& kernel, ProbeWorkers& probes,
                                               const CommandLine& line, const NodePlan& node,
                                               Interfaces interfaces, Log* log);

  // Returns the exit status when one of `signals` comes, or when kubelet cannot be served. SIGHUP only
  // requests a discovery of configuration and hardware.
  int Run(const sigset_t& signals);

  // The parts whose threads have not ended within their limits after Run(). If there are any, the process has
  // to end without waiting for them: a driver may not answer, and a reconcile pass can be interrupted
  // anywhere.
  std::vector<std::string> StillRunning();

 private:
  static constexpr std::chrono::seconds kFirstPass{30};
  static constexpr std::chrono::seconds kLastStep{1};
  static constexpr std::chrono::seconds kLastAnswers{5};  // to kubelet
  // Limits of calls to kubelet's pod-resources API, by the caller that waits.
  static constexpr std::chrono::milliseconds kAdmissionWaits{100};
  static constexpr std::chrono::milliseconds kAddWaits{1000};

  // A pass or a binding that takes longer counts as stuck. A pass waits some seconds for each NIC in a
  // namespace that the kernel is deleting.
  static constexpr std::chrono::seconds kLongestPass{900};
  static constexpr std::chrono::seconds kLongestBinding{60};

  Daemon(const Root& root, Kernel& kernel, const CommandLine& line,
         const kubelet::Advertisement& advertisement, Interfaces interfaces, Log* log);
  Result<void> ServeKubelet();
  void StartPasses(std::chrono::seconds reconcile_interval);
  void RegistrarStep(std::chrono::seconds limit);
  Result<Bindings> Bind(const BindRequest& request);
  [[nodiscard]] http::HttpResponse AnswerHttp(const http::HttpRequest& request);
  [[nodiscard]] nic_metrics::NicPageSources CollectNics();
  // Returns the next signal. Reports to the service manager while it waits.
  int AwaitSignal(const sigset_t& signals);
  void Stop();

  const Root root_;
  Log* log_;
  Activity activity_;
  SystemdStatus systemd_;
  ReportLog report_log_;
  reconcile::Reconciler reconciler_;
  reconcile::DriftWatch drift_;
  nic_metrics::NicCollector nics_;
  nic_metrics::CachedNicPage nic_page_;
  AttachCounts attaches_;
  kubelet::PodResources pod_resources_;
  late_binding::AdmissionHints hints_;
  kubelet::Registrar registrar_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<PassLoop> reconciling_;
  std::unique_ptr<PassLoop> watching_;
  late_binding::Binder binder_;
  std::unique_ptr<late_binding::BindServer> bind_server_;
  lldp::NodeFeatures features_;
  node_status::NodeStatusService node_status_;
  // Before the node watcher, which gives them the plan.
  std::unique_ptr<lldp::LldpWatch> lldp_;
  Published<NodeIndices> claimed_;  // by all nodes of the cluster
  reachability::RailVerdicts rails_;
  std::unique_ptr<reachability::ReachabilityWatch> reach_;
  node_index::IndexClaiming index_;
  std::unique_ptr<NodeWatcher> node_watcher_;
  std::unique_ptr<fabric_follow::Follower> follower_;
  std::unique_ptr<Pages> pages_;       // last: they show all the others
  std::future<Result<void>> serving_;  // the thread that serves kubelet
};

// The page at /metrics: all metrics of railheadd, as docs/reference/metrics.md lists them. Labels are
// resources, rules, kinds, outcomes, and rails with their switch ports: a node has a few of each. A label is
// never a device, a pod or an error's text. Those are on a page of their own:
// deviceplugin/services/nic_metrics/nic_page.h. Threads: thread-safe, as what it reads is.

struct MetricsSources {
  Root root;
  const Activity* activity;
  std::vector<std::shared_ptr<const kubelet::ResourceActivity>> resources;
  std::vector<health::DeviceHealth> health;
  const fabric_follow::Follower* follower = nullptr;  // null: no fabric is followed
  AttachCounts* attaches = nullptr;
  lldp::LldpReport lldp_report;
  reachability::ReachabilityReport reach;
  const node_status::NodeStatusService* node_status_service = nullptr;
  bool claims_index = false;
};

std::string MetricsPage(const MetricsSources& sources, ExpositionFormat format);

}  // namespace railhead::daemon
